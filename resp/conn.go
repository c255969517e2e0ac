package resp

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"runtime/debug"
	"sync/atomic"
	"time"

	"sequins/reads"
)

// conn is the connection of a client. serve answers its commands in rounds: one for what has arrived at a time.
//
// Deadlines: setting one takes a lock and a timer in the runtime, so conn sets one only if it moves by more than slack.
//
// Progress: each write of up to writeChunk bytes has its own timeout, so that sending a large answer may take long, but a
// client that stops reading is cut off.
type conn struct {
	net.Conn
	server   *Server
	id       int64
	accepted time.Time
	slack    time.Duration
	waiting  atomic.Bool // nothing of a command has arrived

	p parser
	w replies // its buffer is that of round
	state
	round   *round   // nil between two rounds
	mixed   []*round // of the command with keys of several dbs that is being answered
	closing bool     // close the connection after the round
	last    int      // rounds since Drain
	err     error    // the connection cannot be used any more

	readDB, readVersion []byte // of the last read

	since     time.Time // when the last answer was written or the connection was accepted
	begun     time.Time // when a part of a command had arrived; zero between two commands
	haveRead  time.Time // the deadlines that were set
	haveWrite time.Time
	charged   int64 // bytes of the buffer that are counted, see Server.charge
}

// round is the pooled state of a round.
type round struct {
	reads.Read
	reading reading
	out     []byte
}

const (
	// writeChunk is how many bytes are written with one timeout, and the size from which answers are sent before the end
	// of a round.
	writeChunk = 64 << 10
	// keptOut is the capacity of the buffer for answers that is kept.
	keptOut = 2 * writeChunk
	// waitingGrace is how long a connection without a command stays open at shutdown.
	waitingGrace = 50 * time.Millisecond
	// lingerTime is how long the end of a client's requests is waited for when a connection is closed, and lingerBytes how
	// much is received meanwhile. Without that, the kernel may drop the last answers.
	lingerTime  = time.Second
	lingerBytes = 1 << 20
)

func newConn(nc net.Conn, s *Server, id int64) *conn {
	now := time.Now()
	c := &conn{Conn: nc, server: s, id: id, accepted: now, since: now}
	c.slack = min(s.opts.Read, s.opts.Write, 10*time.Second) / 10
	c.p.limits, c.p.stranger = s.limits, s.opts.Tokens != nil
	c.waiting.Store(true)
	return c
}

// serve answers commands until the connection ends.
func (c *conn) serve() {
	defer c.server.remove(c)
	defer func() {
		if p := recover(); p != nil { // a bug, which ends only this connection
			c.server.limited.Error("panic while answering a command", "panic", p, "stack", string(debug.Stack()))
			if c.round != nil {
				c.round.Release()
			}
			c.Close() //nolint:errcheck // nothing can be done about it
		}
		c.server.charge(-c.charged)
	}()
	if c.handshake() {
		for c.receive() && c.answer() && !c.isOver() {
		}
	}
	c.linger()
}

// lastRounds is how many rounds may begin after Drain was called: clients that never pause must not keep the connection.
const lastRounds = 16

// isOver reports whether the connection ends after a round because of the shutdown: when what had been received at its
// beginning is answered.
func (c *conn) isOver() bool {
	if !c.server.draining.Load() {
		return false
	}
	c.last++
	return c.last > 1 && c.p.between() || c.last > lastRounds
}

// handshake performs the TLS handshake, if the connection uses TLS. It counts and logs failed ones, except those of clients
// that send nothing or close the connection.
func (c *conn) handshake() (ok bool) {
	secure, isTLS := c.Conn.(*tls.Conn)
	if !isTLS {
		return true
	}
	c.haveRead = c.since.Add(c.server.opts.Read)
	c.haveWrite = c.haveRead
	if c.err = c.SetDeadline(c.haveRead); c.err == nil && c.hurryIfClosing() == nil {
		c.err = secure.Handshake()
	}
	if c.err != nil && !errors.Is(c.err, io.EOF) && !errors.Is(c.err, net.ErrClosed) && !errors.Is(c.err, os.ErrDeadlineExceeded) {
		c.server.handshakes.Add(1)
		c.server.limited.Error("a TLS handshake has failed", "client", c.RemoteAddr().String(), "error", c.err)
	}
	return c.err == nil
}

// receive waits for more bytes. The idle timeout applies to the first one of a command, the read timeout to the others.
func (c *conn) receive() bool {
	room := c.p.room(c.growTo)
	idle := c.p.between()
	if c.waiting.Load() != idle {
		c.waiting.Store(idle)
	}
	if c.err = c.extendRead(idle); c.err == nil {
		c.err = c.hurryIfClosing()
	}
	if c.err != nil {
		return false
	}
	n, err := c.Conn.Read(room)
	if c.p.w += n; n == 0 { // otherwise the next read has the same error
		c.err = err
	}
	return c.err == nil
}

// extendRead sets the deadline of the next read.
func (c *conn) extendRead(idle bool) error {
	o := &c.server.opts
	var deadline time.Time
	switch {
	case !idle:
		if c.begun.IsZero() {
			c.begun = time.Now()
		}
		deadline = c.begun.Add(o.Read)
	case o.Idle > 0 && !c.p.stranger:
		deadline = c.since.Add(o.Idle)
	}
	if c.p.stranger { // its commands must not keep the connection
		deadline = c.accepted.Add(o.Read)
	}
	if d := deadline.Sub(c.haveRead); d >= 0 && d <= c.slack {
		return nil
	}
	c.haveRead = deadline
	return c.Conn.SetReadDeadline(deadline)
}

// growTo reports whether the buffer may have a size, and counts it.
func (c *conn) growTo(size int) bool {
	n := int64(size) - c.charged
	if !c.server.charge(n) {
		return false
	}
	c.charged += n
	return true
}

// hurry shortens the deadline of a connection that waits for a command.
func (c *conn) hurry() error {
	if !c.waiting.Load() {
		return nil
	}
	return c.Conn.SetReadDeadline(time.Now().Add(waitingGrace))
}

// hurryIfClosing calls hurry for a connection that becomes idle during the shutdown.
func (c *conn) hurryIfClosing() error {
	if !c.server.draining.Load() {
		return nil
	}
	return c.hurry()
}

// answer answers the commands that have arrived, and reports whether the connection can have more.
func (c *conn) answer() bool {
	c.round = c.server.rounds.Get().(*round)
	c.w.out = c.round.out[:0]
	for !c.closing && c.err == nil {
		cmd, ok, err := c.p.next()
		if err != nil {
			c.lookUp()
			c.fail("ERR " + err.Error())
			c.closing = true
		}
		if !ok {
			break
		}
		c.begun = time.Time{}
		c.execute(cmd)
		c.flushIfFull()
	}
	c.lookUp()
	c.endRound()
	if c.p.shrink() {
		c.server.charge(-c.charged)
		c.charged = 0
	}
	return !c.closing && c.err == nil
}

// endRound sends the answers.
func (c *conn) endRound() {
	c.flush()
	c.round.out = c.w.out[:0]
	c.w.out = nil
	c.round.end(c.server)
	c.round = nil
}

// end returns a round to the pool.
func (d *round) end(s *Server) {
	d.Release()
	d.reading.clear()
	if cap(d.out) > keptOut {
		d.out = nil
	}
	s.rounds.Put(d)
}

// flushIfFull sends the answers if there are many.
func (c *conn) flushIfFull() {
	if len(c.w.out) >= writeChunk {
		c.flush()
	}
}

// flush sends the answers. After an error they are dropped.
func (c *conn) flush() {
	c.write(c.w.out)
	if c.w.out = c.w.out[:0]; cap(c.w.out) > 16*writeChunk {
		c.w.out = nil
	}
}

// write writes p, unless the connection has failed.
func (c *conn) write(p []byte) {
	for len(p) > 0 && c.err == nil {
		now, n := time.Now(), min(len(p), writeChunk)
		deadline, limited := c.writeBy(now, n)
		if deadline.Sub(c.haveWrite) > c.slack || limited {
			c.haveWrite = deadline
			if c.err = c.Conn.SetWriteDeadline(deadline); c.err != nil {
				return
			}
		}
		c.since = now
		n, c.err = c.Conn.Write(p[:n])
		p = p[n:]
	}
}

// writeBy returns the deadline for writing n bytes. limited reports that it is earlier than usual, because the answers hold
// memory that others need.
func (c *conn) writeBy(now time.Time, n int) (deadline time.Time, limited bool) {
	deadline = now.Add(c.server.opts.Write)
	earlier := func(by time.Time) {
		if !by.IsZero() && by.Before(deadline) {
			deadline, limited = by, true
		}
	}
	if c.round != nil {
		earlier(c.round.WriteBy(n))
	}
	for _, d := range c.mixed {
		earlier(d.WriteBy(n))
	}
	return deadline, limited
}

// bulk appends a value, or sends it without a copy if it is large.
func (c *conn) bulk(b []byte) {
	if len(b) < writeChunk {
		c.w.bulk(b)
		c.flushIfFull()
		return
	}
	c.w.header('$', int64(len(b)))
	c.flush()
	c.write(b)
	c.w.out = append(c.w.out, '\r', '\n')
}

// value is bulk, or null for nil.
func (c *conn) value(b []byte) {
	if b == nil {
		c.w.null()
		return
	}
	c.bulk(b)
}

// linger closes the connection. If answers were sent, it first waits for the client to close it, for a short time.
func (c *conn) linger() {
	defer c.Close() //nolint:errcheck // nothing can be done about it
	if c.err != nil && !errors.Is(c.err, os.ErrDeadlineExceeded) {
		return
	}
	if half, ok := c.Conn.(interface{ CloseWrite() error }); !ok || half.CloseWrite() != nil {
		return
	}
	if c.Conn.SetReadDeadline(time.Now().Add(lingerTime)) == nil {
		io.CopyN(io.Discard, c.Conn, lingerBytes) //nolint:errcheck // the connection is over
	}
}
