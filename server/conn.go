package server

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"time"

	"sequins/internal/http1"
)

// conn stands between fasthttp and a client's connection, for four reasons.
//
// Speed: what most requests are is answered without fasthttp: see plain.
//
// Memory: a key may have 64 KiB, three times as much when it is escaped, and
// fasthttp wants the whole header in one buffer. With ReduceMemoryUsage it takes
// that buffer from a pool for each request, which it begins with a read of one
// byte. conn answers that only when it has all of the header, in a buffer that
// is as large as what has arrived, and never gives more than one header. So
// nobody makes fasthttp wait with its large buffer in hand: a connection costs
// 4 KiB and at most four times of what it has sent. A request is still one read.
//
// Deadlines: fasthttp would look at the clock and set one, twice for every
// request. Setting one costs the runtime a lock and a timer; conn does it only
// where bytes have to be waited for, and only when the deadline has moved by
// more than slack.
//
// Progress: each write of up to writeChunk bytes has a timeout of its own, so
// that a large value may take long, but a client that stops reading may not.
type conn struct {
	net.Conn
	server   *Server
	timeouts Timeouts
	slack    time.Duration

	since     time.Time // when the last answer was written, or the connection accepted
	haveRead  time.Time // the deadlines that are set
	haveWrite time.Time

	state     atomic.Int32 // one of conn…
	lingering atomic.Bool  // see Close
	longLine  bool         // the last header that was given out has no end of its first line
	crowded   bool         // it is beyond Options.MaxConns: see admit
	unhandled bool         // fasthttp has not called a handler for the header that is being given out

	// buf[r:w] has arrived and was not given out; buf[r:end] is of the header that
	// is being given out. err is why nothing more will arrive.
	buf       []byte
	r, end, w int
	err       error
	first     [readAhead]byte // what buf is, mostly

	parts  [2][]byte // what send writes; here, so that nothing is allocated for it
	vector net.Buffers
}

const (
	readAhead  = 4 << 10
	writeChunk = responseBuffer // a full buffer is one write
	// lingerTime and lingerBytes bound what is read from a client that has been
	// refused and may still be sending.
	lingerTime  = 500 * time.Millisecond
	lingerBytes = 1 << 20
)

// What a connection is doing.
const (
	connFresh     int32 = iota // it waits, and nothing has come yet
	connBegun                  // a request has begun to come, or fasthttp is answering one, or waits for the next
	connAnswering              // a plain request is being answered
	connIdle                   // it waits after that
	connClosing                // it is closed when that has been answered: see Close
)

func newConn(nc net.Conn, s *Server) *conn {
	t := s.opts.Timeouts
	c := &conn{Conn: nc, server: s, timeouts: t, since: time.Now()}
	c.slack = min(t.Read, t.Idle, t.Write, 10*time.Second) / 10
	c.buf = c.first[:]
	return c
}

// errNoMore is what fasthttp gets when it asks for more than a header. Bodies
// are not read, so what it has got is not a header to it.
var errNoMore = errors.New("the header ends here")

// Read gives out a header. A read of one byte is the first of a request, unless a
// request is not handled yet: then fasthttp, which does not take every line end
// for the end of a header, looks for more of it with one byte of its buffer left.
// Plain requests are answered here.
func (c *conn) Read(p []byte) (int, error) {
	if c.r == c.end && len(p) == 1 && !c.unhandled {
		for c.fetch(); c.answerPlain(); {
			c.fetch()
		}
	}
	switch {
	case c.r < c.end:
		if c.state.Load() != connBegun {
			c.state.Store(connBegun)
		}
		n := copy(p, c.buf[c.r:c.end])
		c.r += n
		c.unhandled = true
		return n, nil
	case c.err != nil:
		return 0, c.err
	}
	return 0, errNoMore
}

// fetch waits for a header and makes it the next to be given out. Where it
// stays incomplete, because of an error or because it is too long, it is what
// there is of it. It may begin late, but what has begun has to come to its end
// soon.
func (c *conn) fetch() {
	c.compact()
	deadline := c.since.Add(c.timeouts.Idle)
	if c.state.Load() == connFresh {
		deadline = c.since.Add(c.timeouts.Read)
	}
	begun := false
	for searched := 0; ; {
		if c.w > 0 && !begun {
			begun = true
			deadline = time.Time{} // from now, if the rest has to be waited for
		}
		c.skipEmptyLines()
		if n := http1.HeaderEnd(c.buf[c.r:c.w], searched); n > 0 {
			c.end = c.r + n
			break
		}
		c.end = c.w
		if c.err != nil || c.w-c.r >= maxHeader {
			break
		}
		searched = c.w - c.r
		if deadline.IsZero() {
			deadline = time.Now().Add(c.timeouts.Read)
		}
		c.receive(deadline)
	}
	c.longLine = bytes.IndexByte(c.buf[c.r:c.end], '\n') < 0
}

// compact moves what has not been given out to the front, and lets go of a
// large buffer that is not needed any more.
func (c *conn) compact() {
	rest := c.buf[c.r:c.w]
	if len(rest) <= readAhead {
		c.buf = c.first[:]
	}
	copy(c.buf, rest)
	c.r, c.end, c.w = 0, 0, len(rest)
}

// skipEmptyLines drops line ends before a request line, as RFC 9112, section
// 2.2, asks for.
func (c *conn) skipEmptyLines() {
	for c.r < c.w && (c.buf[c.r] == '\r' || c.buf[c.r] == '\n') {
		c.r++
	}
	if c.r == c.w {
		c.r, c.w = 0, 0
	}
}

// receive waits for more of a header.
func (c *conn) receive(deadline time.Time) {
	if c.w == len(c.buf) {
		// Room for skipped lines: they came with one read into first.
		larger := make([]byte, min(4*len(c.buf), maxHeader+readAhead))
		copy(larger, c.buf)
		c.buf = larger
	}
	if d := deadline.Sub(c.haveRead); d < 0 || d > c.slack {
		if c.err = c.Conn.SetReadDeadline(deadline); c.err != nil {
			return
		}
		c.haveRead = deadline
	}
	var n int
	if c.server.closing.Load() && c.hurry() != nil {
		return
	}
	n, c.err = c.Conn.Read(c.buf[c.w:])
	c.w += n
	if c.err != nil {
		c.noteHandshake()
	}
	if n > 0 && c.state.Load() == connFresh {
		c.state.Store(connBegun)
	}
}

// noteHandshake counts and logs that the connection ends as its handshake was
// refused. Clients that say nothing or hang up are not of interest.
func (c *conn) noteHandshake() {
	secure, ok := c.Conn.(*tls.Conn)
	var timeout net.Error
	if !ok || secure.ConnectionState().HandshakeComplete || errors.Is(c.err, io.EOF) || errors.Is(c.err, net.ErrClosed) ||
		errors.As(c.err, &timeout) && timeout.Timeout() {
		return
	}
	c.server.handshakes.Add(1)
	c.server.trouble("a TLS handshake has failed", "client", c.RemoteAddr().String(), "error", c.err)
}

// Write gives every chunk of p its own time.
func (c *conn) Write(p []byte) (written int, err error) {
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

// send writes an answer that is one chunk or two, in one write. If it cannot, the
// connection ends.
func (c *conn) send(head, value []byte, now time.Time) {
	if c.err = c.extendWrite(now); c.err != nil {
		return
	}
	if len(value) == 0 {
		_, c.err = c.Conn.Write(head)
		return
	}
	c.parts = [2][]byte{head, value}
	c.vector = c.parts[:]
	_, c.err = c.vector.WriteTo(c.Conn)
	c.parts = [2][]byte{}
}

func (c *conn) extendWrite(now time.Time) error {
	c.since = now
	t := c.since.Add(c.timeouts.Write)
	if t.Sub(c.haveWrite) <= c.slack {
		return nil
	}
	c.haveWrite = t
	return c.Conn.SetWriteDeadline(t)
}

// Close closes the connection, at the end of the plain request that is being answered
// if there is one: to fasthttp, which closes what is idle at shutdown, it has not come.
func (c *conn) Close() error {
	if c.state.CompareAndSwap(connAnswering, connClosing) {
		return nil
	}
	return c.close()
}

// close closes the connection. If it is lingering it waits for a client that is
// still sending: were bytes of it unread, closing would reset the connection and
// take the answer with it.
func (c *conn) close() error {
	defer c.server.open.remove(c)
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok && c.lingering.Load() {
		if half.CloseWrite() == nil && c.Conn.SetReadDeadline(time.Now().Add(lingerTime)) == nil {
			io.CopyN(io.Discard, c.Conn, lingerBytes) //nolint:errcheck // a courtesy: whatever it ends with, the connection is closed
		}
	}
	return c.Conn.Close()
}
