package server

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"sequins/internal/conns"
	"sequins/internal/http1"
	"sequins/reads"
)

// conn is a client's connection. serve answers plain requests on it. At the first request that is not plain,
// net/http takes the connection over permanently, and reads what has arrived from conn.
//
// Progress: each write of up to writeChunk bytes has its own timeout, so that sending a large value may take
// long, but a client that stops reading is cut off.
type conn struct {
	conns.Base
	server   *Server
	timeouts Timeouts
	crowded  bool // beyond Options.MaxConns, see admit

	inHeader atomic.Bool // net/http reads a header
	header   int         // how much of it net/http has read
	held     int         // bytes of it that count for maxHeaders

	took      sync.Once // see taken
	unhandled bool      // net/http has not called the handler for what it reads next

	since time.Time // when the last answer was written or the connection was accepted
	fresh bool      // no request so far

	// buf[r:w] has arrived and was not answered yet. buf is nil after net/http has read all of it. err is the
	// read error, sendErr the reason why the last answer was not sent completely.
	buf     []byte
	r, w    int
	err     error
	sendErr error

	date  []byte // the field, of the second dated
	dated int64

	socket syscall.RawConn // without TLS
	parts  [2][]byte       // the buffers of send, to avoid an allocation
	vector net.Buffers

	corked bool   // Write keeps the next piece for the one after it, so that the client wakes up once for both
	kept   []byte // at most net/http's buffer
}

const (
	readAhead  = 4 << 10        // the longest header of a plain request
	writeChunk = responseBuffer // a full buffer is one write
)

func newConn(nc net.Conn, s *Server) *conn {
	t := s.opts.Timeouts
	slack := min(t.Read, t.Idle, t.Write, 10*time.Second) / 10
	c := &conn{Base: s.open.New(nc, slack), server: s, timeouts: t, since: time.Now(), fresh: true, buf: make([]byte, readAhead)}
	c.inHeader.Store(true)
	if tcp, ok := nc.(*net.TCPConn); ok {
		c.socket, _ = tcp.SyscallConn() // fails if the connection has been closed
	}
	return c
}

// serve answers plain requests until the connection ends or is handed over.
func (c *conn) serve() {
	defer func() {
		if p := recover(); p != nil { // a bug, which ends only this connection
			c.server.limited.Error("panic while reading a request", "panic", p, "stack", string(debug.Stack()))
			c.Close() //nolint:errcheck // nothing can be done about it
		}
	}()
	if c.err = c.Handshake(c.since.Add(c.timeouts.Read)); c.err != nil {
		c.refusePlainHTTP()
		c.server.open.FailedHandshake(c, c.err)
	}
	for open := true; open; {
		header := c.fetch()
		if c.isOver() {
			break
		}
		var done bool
		if done, open = c.answerPlain(header); !done {
			c.server.handOver(c)
			return
		}
		c.r += len(header)
	}
	c.Close() //nolint:errcheck // nothing can be done about it
}

// refusePlainHTTP answers a client that sent an HTTP request instead of a handshake, as net/http does.
func (c *conn) refusePlainHTTP() {
	first, ok := errors.AsType[tls.RecordHeaderError](c.err)
	if !ok || first.Conn == nil || !slices.Contains(httpBegins, string(first.RecordHeader[:])) {
		return
	}
	c.err = errors.New("the client has sent an HTTP request without TLS")
	refuse(first.Conn, "this port speaks TLS: use https://")
}

// refuse answers a client that uses TLS, or does not, where it should not, or should.
func refuse(nc net.Conn, line string) {
	const header = "HTTP/1.0 400 Bad Request\r\nContent-Type: " + plainText + "\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n"
	if _, err := io.WriteString(nc, header+line+"\n"); err == nil {
		conns.CloseWrite(nc) //nolint:errcheck // it is closed anyway
	}
}

// httpBegins are the first bytes of HTTP requests.
var httpBegins = []string{"GET /", "HEAD ", "POST ", "OPTIO", "PRI *"}

// fetch waits for a header and returns it. If the header stays incomplete, because of an error or its length,
// fetch returns the part that has arrived. The idle timeout applies until the first byte, the read timeout
// from then on.
func (c *conn) fetch() (header []byte) {
	c.w = copy(c.buf, c.buf[c.r:c.w])
	c.r = 0
	deadline := c.since.Add(c.timeouts.Idle)
	if c.fresh {
		deadline = c.since.Add(c.timeouts.Read)
	}
	c.fresh = false
	begun, timed := false, false
	for searched := 0; ; {
		begun = begun || c.w > 0
		c.skipEmptyLines()
		if n := http1.HeaderEnd(c.buf[c.r:c.w], searched); n > 0 {
			return c.buf[c.r : c.r+n]
		}
		if c.err != nil || c.w == len(c.buf) {
			return c.buf[c.r:c.w]
		}
		if begun && !timed {
			timed = true
			deadline = time.Now().Add(c.timeouts.Read)
		}
		searched = c.w - c.r
		c.receive(deadline)
		if c.r < c.w && c.buf[c.r] == tlsHandshake && !c.IsTLS() {
			c.err, c.r, c.w = errors.New("the client speaks TLS, and this port does not"), 0, 0
			c.server.open.FailedHandshake(c, c.err)
			refuse(c.Conn, "this port does not speak TLS: use http://") // clients take it for an invalid record, and do not wait
			return nil
		}
	}
}

// tlsHandshake is the first byte of a connection with TLS, which no request begins with (RFC 8446, section 5.1).
const tlsHandshake = 22

// skipEmptyLines drops line ends before a request line (RFC 9112, section 2.2).
func (c *conn) skipEmptyLines() {
	for c.r < c.w && (c.buf[c.r] == '\r' || c.buf[c.r] == '\n') {
		c.r++
	}
	if c.r == c.w {
		c.r, c.w = 0, 0
	}
}

// receive reads more of a header.
func (c *conn) receive(deadline time.Time) {
	if c.err = c.Await(deadline, c.w == 0); c.err != nil {
		return
	}
	var n int
	n, c.err = c.Conn.Read(c.buf[c.w:])
	if c.w += n; c.w > 0 {
		c.Arrived()
	}
}

const tooLong = "the request took too long to arrive"

// isOver reports whether the connection ends because of a read error or a timeout. If part of a header has
// arrived when the time is over, the client gets an answer.
func (c *conn) isOver() bool {
	if c.err == nil || c.w > c.r && !errors.Is(c.err, os.ErrDeadlineExceeded) {
		return false
	}
	if c.w > c.r {
		c.refuse(http.StatusRequestTimeout, tooLong)
	}
	return true
}

// refuse sends the last answer of the connection, to a request whose header has not arrived whole.
func (c *conn) refuse(code int, text string) {
	r := c.server.requests.Get().(*request)
	defer r.end()
	r.begin(c, http.MethodGet)
	r.closing = true
	if code == http.StatusServiceUnavailable {
		r.add("Retry-After", retryAfter)
	}
	r.fail(code, text)
	r.send()
}

// Read implements net.Conn for net/http. It returns buffered data first.
func (c *conn) Read(p []byte) (int, error) {
	if c.r < c.w {
		n := copy(p, c.buf[c.r:c.w])
		c.r += n
		return n, c.hold(n)
	}
	c.buf = nil
	if c.err != nil {
		return 0, c.err
	}
	n, err := c.Conn.Read(p)
	if refused := c.hold(n); refused != nil {
		c.err = refused
		return 0, refused
	}
	return n, err
}

// Write writes p. Each chunk has its own timeout. If the connection is corked, p is sent with what is written next.
func (c *conn) Write(p []byte) (written int, err error) {
	if c.unhandled {
		c.recordRefusal(p)
	}
	if c.corked {
		c.corked, c.kept = false, append(c.kept, p...) // net/http has more to write if its buffer is full
		return len(p), nil
	}
	if len(c.kept) > 0 {
		c.send(c.kept, p, time.Now())
		c.kept = c.kept[:0]
		return len(p), c.sendErr
	}
	for {
		if err := c.extendWrite(time.Now()); err != nil {
			return written, err
		}
		n, err := c.Conn.Write(p[:min(len(p), writeChunk)])
		written += n
		if p = p[n:]; err != nil || len(p) == 0 {
			return written, err
		}
	}
}

// recordRefusal counts and logs an answer that net/http sends without calling the handler, because it cannot
// parse the request.
func (c *conn) recordRefusal(answer []byte) {
	c.unhandled = false
	r := c.server.requests.Get().(*request)
	defer r.end()
	r.begin(c, http.MethodGet)
	if status := len("HTTP/1.1 "); len(answer) > status+3 {
		r.code, _ = strconv.Atoi(string(answer[status : status+3])) // net/http always writes a number
	}
	r.finish()
}

// send writes an answer of one or two chunks in one write. After an error the connection ends.
func (c *conn) send(head, value []byte, now time.Time) {
	if c.sendErr = c.extendWrite(now); c.sendErr != nil {
		return
	}
	if len(value) == 0 {
		_, c.sendErr = c.Conn.Write(head)
		return
	}
	c.parts = [2][]byte{head, value}
	c.vector = c.parts[:]
	_, c.sendErr = c.vector.WriteTo(c.Conn)
	c.parts = [2][]byte{}
}

// sendBody writes head, and then sends what of a value can be sent from its file at once. One packet for both (MSG_MORE) costs half as
// much again on loopback.
func (c *conn) sendBody(head []byte, body *reads.Body) (n int, err error) {
	if err = c.extendWrite(time.Now()); err == nil && len(head) > 0 {
		_, err = c.Conn.Write(head)
	}
	if err != nil {
		return 0, err
	}
	err = c.socket.Write(func(fd uintptr) (done bool) {
		n, done = body.SendTo(int(fd))
		return done
	})
	return n, err
}

func (c *conn) extendWrite(now time.Time) error {
	c.since = now
	return c.ExtendWrite(now.Add(c.timeouts.Write))
}

// CloseWrite lets net/http end an answer while the client is still sending.
func (c *conn) CloseWrite() error { return conns.CloseWrite(c.Conn) }
