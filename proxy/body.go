package proxy

import (
	"io"
	"net"
)

// body is the body of an answer, read from its connection.
type body struct {
	conn *conn // nil after Close
	off  int   // bytes read of a body that is complete in memory
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	switch {
	case b.conn == nil:
		return 0, net.ErrClosed
	case !b.conn.whole():
		return b.conn.stream(p)
	case b.off == len(b.conn.body):
		return 0, io.EOF
	}
	n := copy(p, b.conn.body[b.off:])
	b.off += n
	return n, nil
}

// Close releases the connection. If a streamed body was not read to its end, the connection is
// closed.
func (b *body) Close() error {
	if c := b.conn; c != nil {
		b.conn = nil
		c.done()
	}
	return nil
}
