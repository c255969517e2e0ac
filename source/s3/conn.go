package s3

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"
)

// connections tracks the open connections of a client to close them: the SDK does
// not expose its idle ones.
type connections struct {
	timeout time.Duration // maximum silence
	connect func(ctx context.Context, network, address string) (net.Conn, error)

	mu     sync.Mutex
	open   map[*conn]struct{}
	closed bool // no new connections
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
	if cs.closed { // closed during the dial, perhaps for a call that has ended
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
		_ = c.Conn.Close() // only read from
	}
}

// conn fails when the other side has been silent for too long. Each read and each
// write restarts the timeout: an idle connection in the pool is being read from.
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
