package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"sequins/internal/http1"
)

const (
	// readBuffer is the size of the read buffer, which limits the header. It holds most values,
	// too.
	readBuffer = 8 << 10
	// maxWhole is the largest body, in bytes, that is read completely before the answer is usable.
	// Larger ones are streamed.
	maxWhole = 64 << 10
	// prefixSize is how much of a streamed body is read before the answer is usable. It fills the
	// first write to the client, so that another peer can still answer if this one fails before the
	// client has received a byte.
	prefixSize = 68 << 10
	// pieceTime is how long a peer may take to send the next part of a streamed body.
	pieceTime = 10 * time.Second
	// promptTime is the same for an answer that is read at once: see Query.Prompt.
	promptTime = time.Second
	// minRate is the lowest average rate, in bytes per second, at which a streamed body must be
	// read after rateGrace. It bounds how long a slow client, or a slow peer, occupies a connection.
	minRate   = 32 << 10
	rateGrace = 10 * time.Second
)

// ErrSlow ends an answer that the caller reads too slowly.
var ErrSlow = fmt.Errorf("the value is read at less than %d bytes a second", minRate)

var (
	// errLate means that the deadline expired while waiting for an answer, which may still arrive.
	errLate = errors.New("no answer in time")
	// errUnanswered means that the connection ended before the first byte of an answer.
	errUnanswered = errors.New("the connection ended without an answer")
)

// conn is a connection to a peer. It is used by one attempt at a time.
type conn struct {
	net.Conn
	peer *peer
	socket
	keep   func() bool // ends that the end of the client closes the connection
	since  time.Time   // time of the last answer
	pooled bool        // it was idle before
	asked  bool        // a request was sent before

	out            []byte // the request
	buf            []byte // buf[:w] is the answer; its body begins at start, which is 0 until the header is complete
	w              int
	start          int
	searched       int // buf[:searched] does not contain the end of the header
	header         header
	head           bool   // the request was HEAD
	body           []byte // the whole body, or the prefix of a streamed one
	have           int    // bytes of body that have arrived
	large          *[]byte
	prompt         bool          // see Query.Prompt
	streamed       int64         // bytes of the body returned to the reader
	streamingSince time.Time     // when streaming began; zero if the connection holds an ordinary slot
	waited         time.Duration // for the peer, since then
}

// largeBodies holds buffers for bodies that do not fit into buf.
var largeBodies = sync.Pool{New: func() any { b := make([]byte, prefixSize); return &b }}

func newConn(nc net.Conn, p *peer) *conn {
	c := &conn{Conn: nc, peer: p, buf: make([]byte, readBuffer)}
	c.socket.init(nc)
	c.keep = context.AfterFunc(p.c.ctx, func() { nc.Close() }) //nolint:errcheck // its user notices
	return c
}

// ask appends Host and the body to the request in out, sends it, and waits for the answer until the deadline. A
// connection that ends before the first byte of an answer is errUnanswered. After errLate the
// caller may call await; after any other error the connection cannot be used.
func (c *conn) ask(r *race, deadline time.Time) error {
	c.head, c.w, c.start, c.searched, c.have, c.streamed = r.q.Head, 0, 0, 0, 0, 0
	c.header, c.body, c.asked, c.prompt = header{}, nil, true, r.q.Prompt
	c.out = append(append(append(c.out, "Host: "...), c.peer.addr...), "\r\n\r\n"...)
	c.out = append(c.out, r.q.Body...)
	if err := c.SetDeadline(deadline); err != nil {
		return fmt.Errorf("%w: %w", errUnanswered, err)
	}
	if _, err := c.Write(c.out); err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return errLate // await will return it, too: the request was not sent
		}
		if r.q.Body == nil || c.await() != nil {
			return fmt.Errorf("%w: %w", errUnanswered, err)
		}
		c.header.closing = true // the peer has refused the request without having read its body
		return nil
	}
	return c.await()
}

// usable reports whether an idle connection can be used. Unsolicited input would be mistaken for
// the next answer.
func (c *conn) usable() bool {
	if !c.tls {
		return c.silent()
	}
	// TLS may have buffered input. On a connection without a request so far, input of the socket is
	// the end of the handshake.
	if c.SetDeadline(longAgo) != nil {
		return false
	}
	_, err := c.Read(c.buf[:1])
	return errors.Is(err, os.ErrDeadlineExceeded) && (!c.asked || c.silent())
}

// longAgo is a deadline in the past: Read returns only what TLS has buffered.
var longAgo = time.Unix(1, 0)

// patience is the extra time for an answer that has begun to arrive when its time is over.
const patience = time.Millisecond

// awaitRest waits a little longer for an answer that is late but has begun to arrive, as happens
// when this node is short of CPU time. No other peer needs to be asked then.
func (c *conn) awaitRest() error {
	if c.silent() {
		return errLate
	}
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	return c.await()
}

// await reads the header and the body, or the prefix of a large body.
func (c *conn) await() error {
	for c.start == 0 {
		if n := http1.HeaderEnd(c.buf[:c.w], c.searched); n > 0 {
			if err := c.begin(n); err != nil {
				return err
			}
			break
		}
		if c.w == len(c.buf) {
			return fmt.Errorf("a header of more than %d bytes", readBuffer)
		}
		c.searched = c.w
		n, err := c.receive(c.buf[c.w:])
		c.w += n
		if err != nil {
			return err
		}
	}
	for c.have < len(c.body) {
		n, err := c.receive(c.body[c.have:])
		c.have += n
		if err != nil {
			return err
		}
	}
	return nil
}

// begin parses a header of n bytes and copies the part of the body that arrived with it.
func (c *conn) begin(n int) (err error) {
	if c.header, err = parseHeader(c.buf[:n]); err != nil {
		return err
	}
	c.start = n
	if c.size() < 0 {
		return nil
	}
	size := min(c.size(), prefixSize)
	c.body = c.buf[n:]
	if int(size) > len(c.body) {
		c.large = largeBodies.Get().(*[]byte)
		c.body = *c.large
		copy(c.body, c.buf[n:c.w])
	}
	c.body = c.body[:size]
	c.have = min(c.w-n, int(size))
	return nil
}

// size returns the length of the body, -1 if it is unknown.
func (c *conn) size() int64 {
	if c.head || c.header.status == 204 || c.header.status == 304 {
		return 0
	}
	return c.header.length
}

// whole reports whether await has read the complete answer.
func (c *conn) whole() bool {
	return c.start > 0 && c.body != nil && c.have == len(c.body) && !c.streams()
}

// streams reports whether the caller reads the body from the connection.
func (c *conn) streams() bool { return c.size() > maxWhole }

// receive reads into p. It never returns 0, nil.
func (c *conn) receive(p []byte) (int, error) {
	n, err := c.Read(p)
	switch {
	case n > 0:
		return n, nil // the next call returns the error again
	case err == nil:
		return 0, io.ErrNoProgress
	case errors.Is(err, os.ErrDeadlineExceeded):
		return 0, errLate
	case c.w == 0:
		return 0, fmt.Errorf("%w: %w", errUnanswered, err)
	case err == io.EOF:
		return 0, io.ErrUnexpectedEOF
	}
	return 0, err
}

// stream reads the next part of the body.
func (c *conn) stream(p []byte) (int, error) {
	left := c.size() - c.streamed
	if left <= 0 {
		return 0, io.EOF
	}
	p = p[:min(int64(len(p)), left)]
	n, err := 0, error(nil)
	if c.streamed < int64(len(c.body)) {
		n = copy(p, c.body[c.streamed:])
	} else {
		n, err = c.nextPiece(p)
	}
	c.streamed += int64(n)
	if err != nil {
		return n, fmt.Errorf("peer %s, after %d bytes of %d: %w", c.peer.addr, c.streamed, c.header.length, err)
	}
	return n, nil
}

// nextPiece reads the part of a streamed body after the prefix.
func (c *conn) nextPiece(p []byte) (int, error) {
	now := time.Now()
	took := now.Sub(c.streamingSince)
	if late := took - rateGrace; late > 0 && float64(c.streamed) < late.Seconds()*minRate {
		if c.waited > took/2 {
			return 0, errLate
		}
		return 0, ErrSlow
	}
	wait := pieceTime
	if c.prompt {
		wait = promptTime
	}
	if err := c.SetDeadline(now.Add(wait)); err != nil {
		return 0, err
	}
	n, err := c.receive(p)
	c.waited += time.Since(now)
	return n, err
}

// reusable reports whether another request may be sent: the answer has been read to its end, and
// nothing followed it. A body is never read beyond its end, so surplus bytes can only have come
// with the header.
func (c *conn) reusable() bool {
	switch {
	case c.start == 0 || c.header.closing:
		return false
	case c.streams():
		return c.streamed == c.header.length
	}
	return c.whole() && c.w <= c.start+len(c.body)
}

// done ends the use of the connection. It is kept if it is reusable, and closed otherwise.
func (c *conn) done() {
	keep := c.reusable()
	if c.large != nil {
		largeBodies.Put(c.large)
		c.large = nil
	}
	c.body = nil
	if cap(c.out) > readBuffer {
		c.out = nil
	}
	if keep && c.streams() {
		c.since = time.Now()
	}
	c.peer.release(c, keep)
}
