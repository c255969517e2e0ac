package conns

import (
	"crypto/tls"
	"io"
	"net"
	"sync/atomic"
	"time"
)

// New returns the common part of a connection. Its deadlines may be late by slack.
func (s *Set) New(nc net.Conn, slack time.Duration) Base {
	return Base{Conn: nc, set: s, slack: slack}
}

// Base is the common part of a connection. One goroutine uses it.
//
// Setting a deadline takes a lock and a timer in the runtime, so a deadline is set only if it moves by more than slack.
type Base struct {
	net.Conn
	set       *Set
	slack     time.Duration
	busy      atomic.Bool // a part of a request has arrived
	haveRead  time.Time   // the deadlines that were set
	haveWrite time.Time
}

// IsTLS reports whether the connection uses TLS.
func (c *Base) IsTLS() bool {
	_, ok := c.Conn.(*tls.Conn)
	return ok
}

// Handshake performs the TLS handshake, if the connection uses TLS.
func (c *Base) Handshake(deadline time.Time) error {
	secure, isTLS := c.Conn.(*tls.Conn)
	if !isTLS {
		return nil
	}
	c.haveRead, c.haveWrite = deadline, deadline
	err := c.SetDeadline(deadline)
	if err == nil {
		err = c.hurry()
	}
	if err == nil {
		err = secure.Handshake()
	}
	return err
}

// Await prepares a read until a deadline; the zero time sets no deadline. idle tells that nothing of a request has arrived.
func (c *Base) Await(deadline time.Time, idle bool) error {
	if d := deadline.Sub(c.haveRead); d < 0 || d > c.slack {
		if err := c.Conn.SetReadDeadline(deadline); err != nil {
			return err
		}
		c.haveRead = deadline
	}
	if c.busy.Load() == idle {
		c.busy.Store(!idle)
	}
	return c.hurry()
}

// Arrived tells that a part of a request has arrived.
func (c *Base) Arrived() { c.busy.Store(true) }

// waitingGrace is how long a connection without a request stays open at shutdown.
const waitingGrace = 50 * time.Millisecond

// hurry shortens the deadline of a connection that waits for a request during the shutdown.
func (c *Base) hurry() error {
	if !c.set.hurrying.Load() || c.busy.Load() {
		return nil
	}
	return c.Conn.SetReadDeadline(time.Now().Add(waitingGrace))
}

// ExtendWrite moves the deadline of writes to a later time.
func (c *Base) ExtendWrite(deadline time.Time) error {
	if deadline.Sub(c.haveWrite) <= c.slack {
		return nil
	}
	return c.LimitWrite(deadline)
}

// LimitWrite sets the deadline of writes, also to an earlier time.
func (c *Base) LimitWrite(deadline time.Time) error {
	c.haveWrite = deadline
	return c.Conn.SetWriteDeadline(deadline)
}

// lingerTime is how long Linger waits.
const lingerTime = time.Second

// Linger ends what is sent and waits a short time for the end of what the client sends, of which it drops as many bytes as most. Otherwise
// the kernel may drop the last answers when the connection is closed.
func (c *Base) Linger(most int64) {
	if CloseWrite(c.Conn) == nil && c.Conn.SetReadDeadline(time.Now().Add(lingerTime)) == nil {
		io.CopyN(io.Discard, c.Conn, most) //nolint:errcheck // the connection is over
	}
}

// Close closes the connection, which is no longer one of its Set.
func (c *Base) Close() error {
	c.set.remove(c)
	return c.Conn.Close()
}

// CloseWrite ends what is sent, if the connection can do that.
func CloseWrite(nc net.Conn) error {
	if half, ok := nc.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
