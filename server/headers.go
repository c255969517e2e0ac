package server

import (
	"errors"
	"net"
	"net/http"
	"sync/atomic"
)

// Headers take memory before it is known who sends them, so the memory of all connections together is limited:
//
//   - of each connection, readAhead bytes of a header that is not answered are free, as it has a buffer of that size anyway;
//   - what is longer counts for maxHeaders over all connections, until it is answered.
const maxHeaders = 64 << 20

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
