package server

import (
	"bytes"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// conn stands between fasthttp and a client's connection, for three reasons.
//
// Memory: a key may have 64 KiB, three times as much when it is escaped, and
// fasthttp wants the whole header in one buffer. With ReduceMemoryUsage it
// keeps no buffer for a connection that is idle, but then begins each request
// with a read of one byte. conn answers that from readAhead bytes of its own,
// so that an idle connection costs 4 KiB and a request is still one read.
//
// Deadlines: fasthttp sets one or two for every request. Setting one costs the
// runtime a lock and a timer; conn does it only where bytes have to be waited
// for, and only when the deadline has moved by more than slack.
//
// Progress: each write of up to writeChunk bytes has a timeout of its own, so
// that a large value may take long, but a client that stops reading may not.
type conn struct {
	net.Conn
	open                *connections
	writeTimeout, slack time.Duration

	wantRead, haveRead time.Time // deadline asked for, and the one that is set
	haveWrite          time.Time

	// longLine is true while the end of the request line has not been seen.
	longLine  bool
	used      atomic.Bool // something has been read
	lingering atomic.Bool // see refuse

	r, w int // buf[r:w] is still to be read
	buf  [readAhead]byte
}

const (
	readAhead  = 4 << 10
	writeChunk = 64 << 10
	// lingerTime and lingerBytes bound what is read from a client that has been
	// refused and may still be sending.
	lingerTime  = 500 * time.Millisecond
	lingerBytes = 1 << 20
	// freshGrace is what a connection without a request has left at shutdown.
	freshGrace = 50 * time.Millisecond
)

// SetReadDeadline notes the deadline for the next Read that has to wait.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.wantRead = t
	return nil
}

// Read reads ahead where a single byte is asked for, which is how fasthttp
// begins a request.
func (c *conn) Read(p []byte) (int, error) {
	if c.r == c.w && len(p) == 1 {
		n, err := c.read(c.buf[:])
		if n <= 0 {
			return 0, err
		}
		c.r, c.w = 0, n
		c.longLine = bytes.IndexByte(c.buf[:n], '\n') < 0
	}
	if c.r < c.w {
		n := copy(p, c.buf[c.r:c.w])
		c.r += n
		return n, nil
	}
	n, err := c.read(p)
	if c.longLine && n > 0 {
		c.longLine = bytes.IndexByte(p[:n], '\n') < 0
	}
	return n, err
}

func (c *conn) read(p []byte) (int, error) {
	if d := c.wantRead.Sub(c.haveRead); d < 0 || d > c.slack {
		if err := c.Conn.SetReadDeadline(c.wantRead); err != nil {
			return 0, err
		}
		c.haveRead = c.wantRead
	}
	n, err := c.Conn.Read(p)
	if n > 0 && !c.used.Load() {
		c.used.Store(true)
	}
	return n, err
}

// Write gives every chunk of p its own time.
func (c *conn) Write(p []byte) (written int, err error) {
	for {
		if err := c.extendWrite(); err != nil {
			return written, err
		}
		n, err := c.Conn.Write(p[:min(len(p), writeChunk)])
		written += n
		if p = p[n:]; err != nil || len(p) == 0 {
			return written, err
		}
	}
}

func (c *conn) extendWrite() error {
	t := time.Now().Add(c.writeTimeout)
	if t.Sub(c.haveWrite) <= c.slack {
		return nil
	}
	c.haveWrite = t
	return c.Conn.SetWriteDeadline(t)
}

// refuse makes Close wait for a client that is still sending: if bytes of it
// lay unread, closing would reset the connection and take the answer with it.
func (c *conn) refuse() { c.lingering.Store(true) }

// Close closes the connection.
func (c *conn) Close() error {
	c.open.remove(c)
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok && c.lingering.Load() {
		if half.CloseWrite() == nil && c.Conn.SetReadDeadline(time.Now().Add(lingerTime)) == nil {
			io.CopyN(io.Discard, c.Conn, lingerBytes) //nolint:errcheck // a courtesy: whatever it ends with, the connection is closed
		}
	}
	return c.Conn.Close()
}

// connections are the open connections of a server.
type connections struct {
	mu  sync.Mutex
	all map[*conn]struct{}
}

// listener wraps what it accepts in conn.
type listener struct {
	net.Listener
	timeouts Timeouts
	open     *connections
}

// Accept waits for the next connection.
func (l listener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	t := l.timeouts
	c := &conn{Conn: nc, open: l.open, writeTimeout: t.Write, slack: min(t.Read, t.Idle, t.Write, 10*time.Second) / 10}
	l.open.add(c)
	return c, nil
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

// closeFresh ends the connections that never had a request. fasthttp would wait
// five seconds for one.
func (o *connections) closeFresh() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for c := range o.all {
		if !c.used.Load() {
			c.Conn.SetReadDeadline(time.Now().Add(freshGrace)) //nolint:errcheck // fails where it is closed already
		}
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
