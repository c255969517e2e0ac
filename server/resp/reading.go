package resp

import (
	"bytes"
	"time"

	"sequins/observe/tracing"
	"sequins/reads"
)

// reading is the reads of a round that follow each other and are of the same db. They are looked up together, by one
// reads.Read.DoBatch, and so in one version. A read of one key that is alone is looked up with Do, which can stream a
// large value.
type reading struct {
	db      []byte
	keys    [][]byte
	pending []pendingRead
	query   reads.Query
}

// pendingRead is a command of a reading, with its part of the keys.
type pendingRead struct {
	cmd      *command
	from, to int
}

// clear forgets the reads, whose keys are in the buffer of the connection.
func (b *reading) clear() {
	clear(b.keys)
	if b.keys = b.keys[:0]; cap(b.keys) > keptArgs {
		b.keys = nil
	}
	b.db, b.pending, b.query = nil, b.pending[:0], reads.Query{}
}

// addRead adds a read to those that are looked up together, after these are answered if it cannot be one of them.
func (c *conn) addRead(cmd *command, args [][]byte) {
	names, of := args[1:], c.selected
	if cmd.form == fields {
		names, of = args[2:], args[1]
	}
	db, text := c.check(names, of, c.server.maxKeys)
	b := &c.round.reading
	if text != "" || len(b.pending) > 0 && (!bytes.Equal(b.db, db) || len(b.keys)+len(names) > c.server.maxKeys) {
		c.lookUp()
	}
	if text != "" {
		c.w.fail(text)
		return
	}
	b.db = db
	from := len(b.keys)
	for _, name := range names {
		if of == nil {
			name = name[len(db)+1:]
		}
		b.keys = append(b.keys, name)
	}
	b.pending = append(b.pending, pendingRead{cmd, from, len(b.keys)})
}

// lookUp looks up the keys of the current reading, if there are any, and answers its commands.
func (c *conn) lookUp() {
	b := &c.round.reading
	switch len(b.pending) {
	case 0:
		return
	case 1:
		c.readOne(b.pending[0])
	default:
		c.readAll()
	}
	b.clear()
	c.hasRead = true
}

// readAll answers several commands from one batch. If that has no answer for a reason that need not concern all of its
// keys, each command is answered by itself.
func (c *conn) readAll() {
	b := &c.round.reading
	o := c.batch(b.pending, b.keys)
	if o == reads.Found {
		return
	}
	alone := o == reads.TooLarge || o == reads.Busy || o == reads.Unreadable || o == reads.Unreachable
	for _, p := range b.pending {
		// Those that need a node that is late would each wait for it again.
		if alone || o == reads.Late && c.server.reads.Holds(b.db, b.keys[p.from:p.to]) {
			c.readOne(p)
		} else {
			c.w.fail(failures[o].text)
		}
		c.flushIfFull()
	}
}

// readOne answers a command by itself.
func (c *conn) readOne(p pendingRead) {
	b, r := &c.round.reading, &c.round.Read
	keys := b.keys[p.from:p.to]
	if p.cmd.answer == aValues || len(keys) > 1 || len(keys[0]) == 0 { // a URL has no empty key
		if o := c.batch([]pendingRead{p}, keys); o != reads.Found {
			c.w.fail(failures[o].text)
		}
		return
	}
	r.Begin(time.Now())
	defer r.Release()
	c.ask(b.db, keys[0])
	b.query.Head = p.cmd.answer != aValue
	c.respond(p.cmd.answer, r.Do(&b.query))
}

// batch looks keys up together, and answers commands from the values. If it does not return Found, it has answered none.
func (c *conn) batch(pending []pendingRead, keys [][]byte) reads.Outcome {
	b, r := &c.round.reading, &c.round.Read
	r.Begin(time.Now())
	defer r.Release()
	c.ask(b.db, nil)
	o := r.DoBatch(&b.query, keys)
	size := int64(0)
	if o == reads.Found {
		for _, v := range r.Values {
			size += int64(len(v))
		}
	}
	base := pending[0].from
	r.LetGo() // the values are copies
	r.Done(tracing.Answer{Status: status(o), Bytes: size})
	if o != reads.Found {
		return o
	}
	for _, p := range pending {
		c.render(p.cmd.answer, r.Values[p.from-base:p.to-base])
	}
	return reads.Found
}

// ask sets the query of a read.
func (c *conn) ask(db, key []byte) {
	c.round.reading.query = reads.Query{DB: db, Key: key, Redis: true}
}

func (c *conn) render(a answer, values [][]byte) {
	switch a {
	case aValue:
		c.bulk(values[0])
	case aValues:
		c.w.array(len(values))
		for _, v := range values {
			c.bulk(v)
		}
	case aCount:
		n := int64(0)
		for _, v := range values {
			if v != nil {
				n++
			}
		}
		c.w.integer(n)
	default:
		c.w.presence(a, values[0] != nil, len(values[0]))
	}
	c.flushIfFull()
}

// presences are the answers that need only the existence of a key.
var presences = [...]struct{ found, absent string }{
	aCount: {":1\r\n", ":0\r\n"},
	aType:  {"+string\r\n", "+none\r\n"},
	aTTL:   {":-1\r\n", ":-2\r\n"},
}

// presence answers a read of one key without its value.
func (w *replies) presence(a answer, found bool, length int) {
	switch {
	case a == aLength:
		w.integer(int64(length))
	case found:
		w.out = append(w.out, presences[a].found...)
	default:
		w.out = append(w.out, presences[a].absent...)
	}
}
