package server

import (
	"net"
	"net/http"
	"time"
)

// reservedConns is the number of connections beyond Options.MaxConns, on which only probes are answered.
const reservedConns = 64

// crowdedTime is the read timeout of connections beyond Options.MaxConns.
const crowdedTime = 2 * time.Second

// admit serves a connection, or closes it if there are too many.
func (s *Server) admit(nc net.Conn) {
	excess := s.open.Excess()
	if excess > reservedConns {
		nc.Close() //nolint:errcheck // nothing was sent on it
		return
	}
	c := newConn(nc, s)
	if excess > 0 {
		c.crowded = true
		c.timeouts.Read = min(c.timeouts.Read, crowdedTime)
	}
	s.open.Go(&c.Base, c.serve)
}

// handOver hands a connection over to net/http permanently.
func (s *Server) handOver(c *conn) {
	c.Arrived()
	s.open.Hold()
	one := &oneConn{c}
	s.http.Serve(one)    //nolint:errcheck // it ends when c is accepted, or has to be closed
	if one.conn != nil { // the shutdown has begun
		c.Close() //nolint:errcheck // nothing was sent on it
		c.taken()
	}
}

// oneConn is a listener that accepts its connection.
type oneConn struct{ conn net.Conn }

func (l *oneConn) Accept() (net.Conn, error) {
	if l.conn == nil {
		return nil, net.ErrClosed
	}
	nc := l.conn
	l.conn = nil
	return nc, nil
}

// Close implements net.Listener. The connection stays open.
func (l *oneConn) Close() error { return nil }

func (l *oneConn) Addr() net.Addr { return &net.TCPAddr{} }

// taken is called when net/http answers the first request of the connection, or never will. Until then a
// shutdown of the http.Server would drop the request.
func (c *conn) taken() { c.took.Do(c.server.open.Done) }

// changed is the ConnState hook of the http.Server.
func (s *Server) changed(nc net.Conn, state http.ConnState) {
	c := nc.(*conn)
	switch state {
	case http.StateActive: // a pipelined request has none
		c.unhandled = true
		c.inHeader.Store(false)
	case http.StateIdle:
		c.unhandled = true
		c.inHeader.Store(true)
		c.release()
	case http.StateClosed:
		c.taken()
		c.release()
	}
}
