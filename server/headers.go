package server

import (
	"errors"
	"net"
	"net/http"
)

// Headers take memory before it is known who sends them, so the memory of all connections together is limited:
//
//   - of each connection, readAhead bytes of a header that is not answered are free, as it has a buffer of that size anyway;
//   - what is longer counts for maxHeaders over all connections, until it is answered.
const maxHeaders = 64 << 20

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
	if more <= 0 {
		return nil
	}
	if c.server.headers.Add(int64(more)) <= maxHeaders {
		c.held += more
		return nil
	}
	c.server.headers.Add(-int64(more))
	c.refuse(http.StatusServiceUnavailable, tooManyHeaders)
	c.Linger(maxHeader)
	return errHeaders
}

// release gives back what hold has taken.
func (c *conn) release() {
	c.server.headers.Add(-int64(c.held))
	c.header, c.held = 0, 0
}
