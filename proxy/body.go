package proxy

import "net"

// body is the body of an answer, read from its connection.
type body struct{ conn *conn } // nil after Close

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	if b.conn == nil || b.conn.peer.c.ctx.Err() != nil { // the connection itself may be closed a little later
		return 0, net.ErrClosed
	}
	return b.conn.stream(p)
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
