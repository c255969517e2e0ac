package proxy

import (
	"io"
	"net"
)

// body is an answer's body, on the connection that it comes from.
type body struct {
	conn *conn // nil when it is closed
	off  int   // what has been read of one that is here whole
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

// Close gives the connection back. One from which a large body has not been
// read to its end is closed.
func (b *body) Close() error {
	if c := b.conn; c != nil {
		b.conn = nil
		c.done()
	}
	return nil
}
