// Package wire speaks ZooKeeper's protocol on one connection: the handshake that begins or resumes a session, requests,
// heartbeats, and the events of watches.
//
// Servers answer the requests of a connection in their order. What a server sends is checked against the bytes that are
// there. A reply that is malformed, missing, late or not asked for ends the connection; all requests without a reply then
// fail with [ErrLost].
package wire

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxPacket bounds what a server may send at once: the listing of a directory of some 400,000 znodes.
	maxPacket = 16 << 20
	// minReply is the size of the header of a reply.
	minReply = 16
	// minHandshake and maxHandshake bound the reply to a handshake: version, session timeout, session id, password, and
	// an optional flag.
	minHandshake, maxHandshake = 20, 256
	// minTimeout is the shortest session timeout that is accepted of a server. It bounds the rate of heartbeats.
	minTimeout = 50 * time.Millisecond

	eventXid = -1
	pingXid  = -2
)

// Session is what a server needs to resume a session. The zero value, with a Timeout, asks for a new one.
type Session struct {
	ID       int64
	Password []byte
	Timeout  time.Duration
	Zxid     int64 // the last change that the client has seen; servers that have not seen it refuse the client
	Xid      int32 // of its last request; by session and xid, an ensemble tells transactions apart, also when the session has moved to another server
}

// Conn is a connection with a session. Its methods may be called concurrently.
type Conn struct {
	conn    net.Conn
	event   func(path string)
	timeout time.Duration // of the session
	id      int64
	zxid    atomic.Int64
	work    sync.WaitGroup  // receive and ping
	open    context.Context // ends with the connection; its cause is why
	end     context.CancelCauseFunc

	writing sync.Mutex // requests are sent in the order of calls

	mu    sync.Mutex
	xid   *int32 // of the session
	calls []call // requests without a reply, oldest first; none are added when open has ended
}

// call is a request without a reply.
type call struct {
	xid   int32
	sent  time.Time
	reply chan reply // capacity 1
}

type reply struct {
	body []byte
	err  error
}

// Connect begins or resumes a session on a connection, which it owns from then on, and updates session to what the server
// answers. The error is SessionExpired if the session has ended. The handshake takes no longer than wait. event is called
// with the path of each watch that fires; it must not block.
func Connect(conn net.Conn, session *Session, wait time.Duration, event func(path string)) (*Conn, error) {
	timeout, err := handshake(conn, session, wait)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	c := &Conn{conn: conn, event: event, timeout: timeout, id: session.ID, xid: &session.Xid}
	c.open, c.end = context.WithCancelCause(context.Background())
	c.zxid.Store(session.Zxid)
	c.work.Go(c.receive)
	c.work.Go(c.ping)
	return c, nil
}

// handshake returns how long either side may be silent.
func handshake(conn net.Conn, s *Session, wait time.Duration) (timeout time.Duration, err error) {
	if err := conn.SetDeadline(time.Now().Add(wait)); err != nil {
		return 0, err
	}
	password := s.Password
	if s.ID == 0 {
		password = make([]byte, 16)
	}
	e := new(encoder)
	e.int32(0) // version of the protocol
	e.int64(s.Zxid)
	e.int32(int32(min(s.Timeout.Milliseconds(), 1<<31-1)))
	e.int64(s.ID)
	e.string(string(password))
	e.bool(false) // no server that can only read
	if _, err := conn.Write(e.packet()); err != nil {
		return 0, err
	}
	packet, err := readPacket(conn, minHandshake, maxHandshake)
	if err != nil {
		return 0, err
	}
	d := decoder{b: packet}
	d.int32() // version of the protocol
	timeout = time.Duration(d.int32()) * time.Millisecond
	id := d.int64()
	password = d.buffer()
	if len(d.b) > 0 {
		d.bool() // whether the server can only read; old ones do not tell
	}
	switch err := d.end(); {
	case err != nil:
		return 0, err
	case id == 0:
		return 0, SessionExpired
	case timeout < minTimeout:
		return 0, fmt.Errorf("session timeout of %d ms", timeout.Milliseconds())
	}
	s.ID, s.Password = id, password
	return max(minTimeout, min(s.Timeout, timeout)), conn.SetDeadline(time.Time{})
}

// SessionID returns the id of the session.
func (c *Conn) SessionID() int64 { return c.id }

// Zxid returns the last change that the server has told of.
func (c *Conn) Zxid() int64 { return c.zxid.Load() }

// Ended is closed when the connection has ended.
func (c *Conn) Ended() <-chan struct{} { return c.open.Done() }

// Err returns why the connection has ended, or nil.
func (c *Conn) Err() error { return context.Cause(c.open) }

// errClosed is the reason for the end of a connection that the client has closed.
var errClosed = errors.New("zookeeper: closed")

// Close ends the connection, but not the session.
func (c *Conn) Close() {
	c.fail(errClosed)
	c.work.Wait()
}

// EndSession ends the session and the connection. It waits for the server's answer, but no longer than wait. Without an answer,
// which is an error, the servers end the session after its timeout.
func (c *Conn) EndSession(wait time.Duration) error {
	abort := time.AfterFunc(wait, func() { c.fail(errClosed) })
	defer abort.Stop()
	_, err := c.request(opCloseSession, new(encoder))
	c.Close()
	return err
}

// fail ends the connection. The first error is the reason.
func (c *Conn) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end(err)
	_ = c.conn.Close() // whatever it returns, the connection is not used any more
	for _, call := range c.calls {
		call.reply <- reply{err: ErrLost}
	}
	c.calls = nil
}

// request sends a request, and returns the body of its reply.
func (c *Conn) request(op int32, body *encoder) ([]byte, error) {
	answer := make(chan reply, 1)
	if err := c.send(op, body, answer); err != nil {
		c.fail(err)
		return nil, ErrLost
	}
	r := <-answer
	return r.body, r.err
}

// send sends a request with the next xid.
func (c *Conn) send(op int32, body *encoder, answer chan reply) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	c.mu.Lock()
	if err := c.Err(); err != nil {
		c.mu.Unlock()
		return err
	}
	*c.xid = *c.xid%math.MaxInt32 + 1
	xid := *c.xid
	c.calls = append(c.calls, call{xid: xid, sent: time.Now(), reply: answer})
	c.mu.Unlock()
	return c.write(xid, op, body)
}

// write writes a packet. c.writing is held.
func (c *Conn) write(xid, op int32, body *encoder) error {
	e := new(encoder)
	e.int32(xid)
	e.int32(op)
	e.b = append(e.b, body.b...)
	if err := c.conn.SetWriteDeadline(time.Now().Add(c.timeout)); err != nil {
		return err
	}
	_, err := c.conn.Write(e.packet())
	return err
}

// ping sends heartbeats, and ends the connection if the oldest request has had no reply for the session timeout.
func (c *Conn) ping() {
	ticker := time.NewTicker(c.timeout / 3)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-c.open.Done():
			return
		}
		c.mu.Lock()
		late := len(c.calls) > 0 && time.Since(c.calls[0].sent) > c.timeout
		c.mu.Unlock()
		if late {
			c.fail(fmt.Errorf("no reply to a request within %s", c.timeout))
			return
		}
		c.writing.Lock()
		err := c.write(pingXid, opPing, new(encoder))
		c.writing.Unlock()
		if err != nil {
			c.fail(err)
			return
		}
	}
}

// receive reads what the server sends until the connection ends.
func (c *Conn) receive() {
	r := bufio.NewReader(c.conn)
	for {
		err := c.conn.SetReadDeadline(time.Now().Add(c.timeout * 2 / 3)) // the time of two heartbeats
		var packet []byte
		if err == nil {
			packet, err = readPacket(r, minReply, maxPacket)
		}
		if err == nil {
			err = c.handle(decoder{b: packet})
		}
		if err != nil {
			c.fail(err)
			return
		}
	}
}

// handle handles one packet.
func (c *Conn) handle(d decoder) error {
	xid, zxid, code := d.int32(), d.int64(), Error(d.int32())
	switch {
	case xid == pingXid:
		return nil
	case xid == eventXid:
		d.int32() // its type; listing the directory again tells what has changed
		d.int32() // state of the session
		path := d.string()
		if err := d.end(); err != nil {
			return fmt.Errorf("event: %w", err)
		}
		c.event(path)
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.calls) == 0 {
		return fmt.Errorf("reply %d to no request", xid)
	}
	next := c.calls[0]
	if xid != next.xid {
		return fmt.Errorf("reply to request %d, expected the one to request %d", xid, next.xid)
	}
	if zxid > c.zxid.Load() {
		c.zxid.Store(zxid)
	}
	switch code {
	case connectionLoss, SessionExpired, authFailed, closing, sessionMoved: // nothing more can be asked on the connection
		return code
	}
	c.calls = c.calls[1:]
	r := reply{body: d.b}
	if code != 0 {
		r.err = code
	}
	next.reply <- r
	return nil
}
