package proxy

import (
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
	// readBuffer takes an answer's header, whose limit it is, and with it most
	// values.
	readBuffer = 8 << 10
	// maxWhole is the largest body, in bytes, that is read whole before the
	// answer counts. Larger ones are streamed.
	maxWhole = 64 << 10
	// prefixSize is how much of a streamed body is read before the answer
	// counts. It fills the first write to the client, so that a peer that fails
	// before the client has got a byte loses to another peer.
	prefixSize = 68 << 10
	// pieceTime is how long a peer may take for the next piece of a streamed body.
	pieceTime = 10 * time.Second
	// minRate is the least average rate, in bytes a second, at which a streamed
	// body has to be read, after the first rateGrace. It bounds how long a slow
	// client occupies a connection.
	minRate   = 32 << 10
	rateGrace = 10 * time.Second
)

var (
	// errLate says that the deadline has passed while an answer was waited for;
	// it may still come.
	errLate = errors.New("no answer in time")
	// errUnanswered says that the connection ended before the first byte of an
	// answer.
	errUnanswered = errors.New("the connection ended without an answer")
	errSlow       = fmt.Errorf("the value is read at less than %d bytes a second", minRate)
	errTooLarge   = fmt.Errorf("a header of more than %d bytes", readBuffer)
)

// conn is a connection to a peer. It is used by one attempt at a time.
type conn struct {
	net.Conn
	peer *peer
	socket
	deadline time.Time // that is set
	since    time.Time // when the last answer came
	pooled   bool      // it has been idle
	asked    bool      // it has had a request

	out            []byte // the request
	buf            []byte // the answer is buf[:w]; its body begins at start, 0 until the header is there
	w              int
	start          int
	searched       int // so much of buf holds no end of the header
	header         header
	head           bool   // it is one to HEAD
	body           []byte // the whole body, or the prefix of one that is streamed
	have           int    // bytes of body that have arrived
	large          *[]byte
	streamed       int64     // bytes of a streamed body that have been read
	streamingSince time.Time // when streaming began; zero: the connection has an ordinary slot
}

// largeBodies are buffers for bodies that do not fit into a connection's own.
var largeBodies = sync.Pool{New: func() any { b := make([]byte, prefixSize); return &b }}

func newConn(nc net.Conn, p *peer) *conn {
	c := &conn{Conn: nc, peer: p, buf: make([]byte, readBuffer)}
	c.socket.init(nc)
	return c
}

// ask sends the request in out, to which it adds the peer's name, and waits for
// the answer until the deadline. What ends before the first byte of an answer is
// errUnanswered. After errLate await may be called again; after any other error
// the connection is of no use.
func (c *conn) ask(head bool, deadline time.Time, slack time.Duration) error {
	c.head, c.w, c.start, c.searched, c.have, c.streamed = head, 0, 0, 0, 0, 0
	c.header, c.body, c.asked = header{}, nil, true
	c.out = append(append(append(c.out, "Host: "...), c.peer.addr...), "\r\n\r\n"...)
	if err := c.until(deadline, slack); err != nil {
		return fmt.Errorf("%w: %w", errUnanswered, err)
	}
	if _, err := c.Write(c.out); err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return errLate // and will stay so: the request has not been sent
		}
		return fmt.Errorf("%w: %w", errUnanswered, err)
	}
	return c.await()
}

// until sets the deadline of what follows. One that is set already and at most
// slack too early is kept: the runtime takes a lock and moves a timer for each.
func (c *conn) until(deadline time.Time, slack time.Duration) error {
	if d := deadline.Sub(c.deadline); d >= 0 && d <= slack {
		return nil
	}
	c.deadline = deadline
	return c.SetDeadline(deadline)
}

// usable says of an idle connection that it can be asked: nothing has come on
// it. What has was not asked for, and would be taken for the next answer.
func (c *conn) usable() bool {
	if !c.tls {
		return c.silent()
	}
	// TLS may have read more than it has given out. On a connection that was
	// never asked, what has come is the end of the handshake.
	if c.until(longAgo, 0) != nil {
		return false
	}
	_, err := c.Read(c.buf[:1])
	return errors.Is(err, os.ErrDeadlineExceeded) && (!c.asked || c.silent())
}

// longAgo is a deadline with which nothing is read from a socket.
var longAgo = time.Unix(1, 0)

// patience is what an answer gets that has begun to arrive when its time is over.
const patience = time.Millisecond

// awaitRest is for an answer that is late. Where this node is short of processor
// time it may have arrived all the same, and nobody else needs to be asked.
func (c *conn) awaitRest() error {
	if c.silent() {
		return errLate
	}
	if err := c.until(time.Now().Add(patience), 0); err != nil {
		return err
	}
	return c.await()
}

// await waits for an answer's header, and for its body or the prefix of a large one.
func (c *conn) await() error {
	for c.start == 0 {
		if n := http1.HeaderEnd(c.buf[:c.w], c.searched); n > 0 {
			if err := c.begin(n); err != nil {
				return err
			}
			break
		}
		if c.w == len(c.buf) {
			return errTooLarge
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

// begin takes up a header of n bytes, and what of the body came with it.
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

// size is how long the body is, -1 if that is not known.
func (c *conn) size() int64 {
	if c.head || c.header.status == 204 || c.header.status == 304 {
		return 0
	}
	return c.header.length
}

// whole reports whether the answer has been read to its end by await.
func (c *conn) whole() bool {
	return c.start > 0 && c.body != nil && c.have == len(c.body) && !c.streams()
}

// streams reports whether the answer has a body that the caller reads from the
// connection.
func (c *conn) streams() bool { return c.size() > maxWhole }

// receive reads into p. It does not return both nothing and no error.
func (c *conn) receive(p []byte) (int, error) {
	n, err := c.Read(p)
	switch {
	case n > 0:
		return n, nil // an error comes again
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

// stream reads the next part of a streamed body.
func (c *conn) stream(p []byte) (int, error) {
	left := c.header.length - c.streamed
	if left <= 0 {
		return 0, io.EOF
	}
	if int64(len(p)) > left {
		p = p[:left]
	}
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

// nextPiece reads what follows the prefix of a streamed body.
func (c *conn) nextPiece(p []byte) (int, error) {
	now := time.Now()
	if late := now.Sub(c.streamingSince) - rateGrace; late > 0 && float64(c.streamed) < late.Seconds()*minRate {
		return 0, errSlow
	}
	if err := c.until(now.Add(pieceTime), pieceTime/10); err != nil {
		return 0, err
	}
	return c.receive(p)
}

// reusable reports whether another request may be sent: the answer has been read
// to its end, and nothing followed it. A body is never read beyond its end, so
// only bytes that came with the header can be too many.
func (c *conn) reusable() bool {
	switch {
	case c.start == 0 || c.header.closing:
		return false
	case c.streams():
		return c.streamed == c.header.length
	}
	return c.whole() && c.w <= c.start+len(c.body)
}

// done ends the use of the connection. It is kept for the next one if it can
// be, and closed otherwise.
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
	if keep && c.streamed > 0 {
		c.since = time.Now()
	}
	c.peer.release(c, keep)
}
