package server

import (
	"errors"
	"net"
	"sync"
	"time"
)

// listener wraps what it accepts in conn.
type listener struct {
	net.Listener
	s     *Server
	close func() error // the Listener's, once
}

func newListener(ln net.Listener, s *Server) *listener {
	return &listener{ln, s, sync.OnceValue(ln.Close)}
}

// Close closes the listener; a second time it does nothing.
func (l *listener) Close() error { return l.close() }

// maxAcceptDelay is how long it waits, at most, before it tries again.
const maxAcceptDelay = time.Second

// Accept waits for the next connection. fasthttp stops serving at any error, so
// those that pass stay here: being out of file descriptors for a while must not
// end a node.
func (l *listener) Accept() (net.Conn, error) {
	for delay := 5 * time.Millisecond; ; delay = min(2*delay, maxAcceptDelay) {
		nc, err := l.Listener.Accept()
		if err == nil {
			if c := l.s.admit(nc); c != nil {
				return c, nil
			}
			delay = 0
			continue
		}
		var passing interface{ Temporary() bool }
		if !errors.As(err, &passing) || !passing.Temporary() {
			return nil, err
		}
		l.s.trouble("accepting a connection", "error", err)
		time.Sleep(delay)
	}
}

// reservedConns are the connections beyond Options.MaxConns that probes are
// answered on.
const reservedConns = 64

// crowdedTime is what a connection beyond Options.MaxConns has for its request.
const crowdedTime = 2 * time.Second

// admit makes a conn of a connection. One that is too many is closed, and nil.
func (s *Server) admit(nc net.Conn) *conn {
	n := s.open.count()
	if n >= s.opts.MaxConns {
		s.refused.Add(1)
		s.trouble("too many connections: clients are refused", "open", n, "max_connections", s.opts.MaxConns)
	}
	if n >= s.opts.MaxConns+reservedConns {
		nc.Close() //nolint:errcheck // nothing was sent on it
		return nil
	}
	c := newConn(nc, s)
	if n >= s.opts.MaxConns {
		c.crowded = true
		c.timeouts.Read = min(c.timeouts.Read, crowdedTime)
	}
	s.open.add(c)
	return c
}

// connections are the open connections of a server.
type connections struct {
	mu  sync.Mutex
	all map[*conn]struct{}
}

func (o *connections) add(c *conn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.all == nil {
		o.all = make(map[*conn]struct{})
	}
	o.all[c] = struct{}{}
}

func (o *connections) remove(c *conn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.all, c)
}

func (o *connections) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.all)
}

// waitingGrace is what a connection that waits for a request has left at shutdown.
const waitingGrace = 50 * time.Millisecond

// hurry ends the connection soon if it waits for a request and fasthttp does not know
// of it, or believes that it is new: it would wait five seconds for one.
func (c *conn) hurry() error {
	if state := c.state.Load(); state != connFresh && state != connIdle {
		return nil
	}
	return c.Conn.SetReadDeadline(time.Now().Add(waitingGrace))
}

// hurry ends the connections that wait.
func (o *connections) hurry() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for c := range o.all {
		c.hurry() //nolint:errcheck // fails where it is closed already
	}
}

// closeAll cuts every connection, whatever it is doing.
func (o *connections) closeAll() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for c := range o.all {
		c.Conn.Close() //nolint:errcheck // nothing can be done about it
	}
}
