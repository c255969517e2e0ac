package resp

import (
	"errors"
	"net"
	"os"
	"runtime/debug"
	"time"

	"sequins/internal/conns"
	"sequins/reads"
)

// conn is the connection of a client. serve answers its commands in rounds: one for what has arrived at a time.
//
// Progress: each write of up to writeChunk bytes has its own timeout, so that sending a large answer may take long, but a
// client that stops reading is cut off.
type conn struct {
	conns.Base
	session
	server   *Server
	id       int64
	accepted time.Time

	p       parser
	w       replies // its buffer is that of round
	round   *round  // nil between two rounds
	closing bool    // close the connection after the round
	hasRead bool    // keys have been looked up, or it had an answer before connections were drained
	err     error   // the connection cannot be used any more

	since   time.Time // when the last answer was written or the connection was accepted
	begun   time.Time // when a part of a command had arrived; zero between two commands
	charged int64     // bytes of the buffer that are counted, see Server.charge
}

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
	// lingerBytes is how much is received from a client that is closing the connection.
	lingerBytes = 1 << 20
	// lastRounds is how many rounds may begin after Set.Drain was called: clients that never pause must not keep the connection.
	lastRounds = 16
)

func newConn(nc net.Conn, s *Server, id int64) *conn {
	now := time.Now()
	c := &conn{Base: s.open.New(nc, min(s.opts.Read, s.opts.Write, 10*time.Second)/10), server: s, id: id, accepted: now, since: now}
	c.tokens, c.p.limits = s.opts.Tokens, s.limits
	if c.tokens != nil {
		c.p.limits = strangerLimits
	}
	return c
}

// serve answers commands until the connection ends.
func (c *conn) serve() {
	defer func() {
		if p := recover(); p != nil { // a bug, which ends only this connection
			c.server.limited.Error("panic while answering a command", "panic", p, "stack", string(debug.Stack()))
			if c.round != nil {
				c.round.Release()
			}
		}
		c.server.charge(-c.charged)
		c.Close() //nolint:errcheck // nothing can be done about it
	}()
	if c.err = c.Handshake(c.accepted.Add(c.server.opts.Read)); c.err != nil {
		c.server.open.FailedHandshake(c, c.err)
		return
	}
	for last := 0; c.receive() && c.answer(); {
		// While connections are drained, this one ends when what had been received at the beginning of a round is answered: a new one not before
		// its client has shaken hands and read a key.
		if !c.server.open.Draining() {
			c.hasRead = true
			continue
		}
		if last++; last > 1 && c.hasRead && c.p.between() || last > lastRounds {
			break
		}
	}
	if c.err == nil || errors.Is(c.err, os.ErrDeadlineExceeded) {
		c.Linger(lingerBytes)
	}
}

// receive waits for more bytes. The idle timeout applies to the first one of a command, the read timeout to the others. A client that must
// authenticate has the read timeout for that, whatever it sends.
func (c *conn) receive() bool {
	room := c.p.room(c.charge)
	if len(room) == 0 {
		return true // the parser has the error
	}
	idle, o := c.p.between(), &c.server.opts
	var deadline time.Time
	switch {
	case c.tokens != nil && c.granted == nil:
		deadline = c.accepted.Add(o.Read)
	case !idle:
		if c.begun.IsZero() {
			c.begun = time.Now()
		}
		deadline = c.begun.Add(o.Read)
	case o.Idle > 0:
		deadline = c.since.Add(o.Idle)
	}
	if c.err = c.Await(deadline, idle); c.err != nil {
		return false
	}
	n, err := c.Conn.Read(room)
	if c.p.w += n; n == 0 { // otherwise the next read has the same error
		c.err = err
	}
	return c.err == nil
}

// charge reports whether the buffer may have a size, and counts it if it is a large one.
func (c *conn) charge(size int) bool {
	n := int64(size)
	if size <= readAhead {
		n = 0
	}
	if !c.server.charge(n - c.charged) {
		return false
	}
	c.charged = n
	return true
}

// answer answers the commands that have arrived, and reports whether the connection can have more.
func (c *conn) answer() bool {
	c.round = c.server.rounds.Get().(*round)
	c.w.out = c.round.out[:0]
	for !c.closing && c.err == nil {
		args, ok, err := c.p.next()
		if err != nil {
			c.lookUp()
			c.w.fail(err.Error())
			c.closing = true
		}
		if !ok {
			break
		}
		c.begun = time.Time{}
		c.execute(args)
		c.flushIfFull()
	}
	c.lookUp()
	c.flush()
	c.round.end(c.server, c.w.out)
	c.round, c.w.out = nil, nil
	return !c.closing && c.err == nil
}

// end returns a round to the pool, with the buffer for answers.
func (d *round) end(s *Server, out []byte) {
	d.Release()
	d.reading.clear()
	if d.out = out[:0]; cap(out) > keptOut {
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

// write writes p, unless the connection has failed. If the answers hold memory that others need, the client has less time than usual.
func (c *conn) write(p []byte) {
	for len(p) > 0 && c.err == nil {
		now, n := time.Now(), min(len(p), writeChunk)
		deadline := now.Add(c.server.opts.Write)
		if by := c.round.WriteBy(n); !by.IsZero() && by.Before(deadline) {
			c.err = c.LimitWrite(by)
		} else {
			c.err = c.ExtendWrite(deadline)
		}
		if c.err != nil {
			return
		}
		c.since = now
		n, c.err = c.Conn.Write(p[:n])
		p = p[n:]
	}
}

// bulk appends a value, or null for nil. It sends a large one without a copy.
func (c *conn) bulk(b []byte) {
	switch {
	case b == nil:
		c.w.null()
	case len(b) < writeChunk:
		c.w.bulk(b)
		c.flushIfFull()
	default:
		c.w.header('$', int64(len(b)))
		c.flush()
		c.write(b)
		c.w.out = append(c.w.out, '\r', '\n')
	}
}
