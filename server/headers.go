package server

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
)

// Headers take memory before it is known who sends them, so the memory of all connections together is limited:
//
//   - of each connection, readAhead bytes of a header that is not answered are free, as it has a buffer of that size anyway;
//   - what is longer counts for maxHeaders over all connections, until it is answered;
//   - an HTTP/2 connection can hold a header of maxHeader bytes that nobody sees before it is complete, so there are at most maxHTTP2 of them.
const (
	maxHeaders = 64 << 20
	maxHTTP2   = 1024
)

// headerMemory counts the bytes of long headers.
type headerMemory struct{ used atomic.Int64 }

// take reports whether n more bytes may be used.
func (m *headerMemory) take(n int) bool {
	if m.used.Add(int64(n)) > maxHeaders {
		m.give(n)
		return false
	}
	return true
}

func (m *headerMemory) give(n int) { m.used.Add(-int64(n)) }

const tooManyHeaders = "the headers of all requests need too much memory: try again"

// errHeaders ends a connection that was refused. net/http answers nothing after an error of this kind.
var errHeaders = &net.OpError{Op: "read", Err: errors.New(tooManyHeaders)}

// hold counts n more bytes of a header that net/http reads. It answers 503 if they are too many.
func (c *conn) hold(n int) error {
	if !c.inHeader.Load() {
		return nil
	}
	c.header += n
	more := c.header - readAhead - c.held
	switch {
	case more <= 0:
		return nil
	case c.server.headers.take(more):
		c.held += more
		return nil
	}
	r := c.server.requests.Get().(*request)
	defer r.end()
	r.begin(c, http.MethodGet)
	r.closing = true
	r.add("Retry-After", retryAfter)
	r.fail(http.StatusServiceUnavailable, tooManyHeaders)
	r.send()
	c.Linger(maxHeader)
	return errHeaders
}

// release gives back what hold has taken.
func (c *conn) release() {
	c.server.headers.give(c.held)
	c.header, c.held = 0, 0
}

// holdStream is hold for a request of HTTP/2, whose header is complete. The caller gives back what it has taken. A refused stream is reset, because an
// answer could wait for its client.
func (s *Server) holdStream(req *http.Request) (taken int, ok bool) {
	n := len(req.RequestURI) + headerSize(req.Header)
	if n <= readAhead {
		return 0, true
	}
	return n, s.headers.take(n)
}

// LimitHTTP2 returns a configuration like secure that offers HTTP/2 only while fewer than maxHTTP2 connections use it. Other clients use HTTP/1.1.
func (s *Server) LimitHTTP2(secure *tls.Config) *tls.Config {
	limited := secure.Clone()
	limited.GetConfigForClient = func(hello *tls.ClientHelloInfo) (c *tls.Config, err error) {
		if secure.GetConfigForClient != nil {
			c, err = secure.GetConfigForClient(hello)
		}
		if err != nil || s.http2.Load() < maxHTTP2 {
			return c, err
		}
		if c == nil {
			c = secure
		}
		c = c.Clone()
		c.NextProtos = slices.DeleteFunc(slices.Clone(c.NextProtos), func(p string) bool { return p == "h2" })
		return c, nil
	}
	return limited
}
