package s3

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"
)

// connections are those that a client has open, so that they can be closed:
// the SDK does not say how to reach the ones it keeps.
type connections struct {
	timeout time.Duration // of silence
	connect func(ctx context.Context, network, address string) (net.Conn, error)

	mu     sync.Mutex
	open   map[*conn]struct{}
	closed bool // there are to be no more
}

func newConnections(o Options) *connections {
	cs := &connections{timeout: o.Timeout, connect: o.Dial, open: map[*conn]struct{}{}}
	if cs.connect == nil {
		cs.connect = (&net.Dialer{Timeout: o.Timeout}).DialContext
	}
	return cs
}

func (cs *connections) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := cs.connect(ctx, network, address)
	if err != nil {
		return nil, err
	}
	tracked := &conn{Conn: c, all: cs}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.closed { // while this one was being made, perhaps for a call that has ended
		return nil, errors.Join(net.ErrClosed, c.Close())
	}
	cs.open[tracked] = struct{}{}
	return tracked, nil
}

func (cs *connections) close() {
	cs.mu.Lock()
	open := cs.open
	cs.open, cs.closed = map[*conn]struct{}{}, true
	cs.mu.Unlock()
	for c := range open {
		_ = c.Conn.Close() // nothing is lost: what was read was read
	}
}

// A conn is given up when the other side has said nothing for too long. What
// it says starts the time again, and so does a request: one that waits in the
// pool is being read from all the while.
type conn struct {
	net.Conn
	all *connections
}

func (c *conn) Read(p []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(c.all.timeout)); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

func (c *conn) Write(p []byte) (int, error) {
	if err := c.SetDeadline(time.Now().Add(c.all.timeout)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

func (c *conn) Close() error {
	c.all.mu.Lock()
	delete(c.all.open, c)
	c.all.mu.Unlock()
	return c.Conn.Close()
}
