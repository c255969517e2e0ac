package resp

import (
	"bytes"
	"math"
	"time"

	"sequins/blocks"
	"sequins/reads"
	"sequins/tracing"
)

// reading is the reads of a round that follow each other and are of the same db. They are looked up together, by one
// reads.Read.DoBatch, and so in one version. A read of one key that is alone is looked up with Do, which can stream a
// large value.
type reading struct {
	db      []byte
	keys    [][]byte
	pending []pendingRead
	query   reads.Query
	path    []byte
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

// addRead adds a read to those that are looked up together.
func (c *conn) addRead(cmd *command, args [][]byte) {
	fields := cmd.form == oneField || cmd.form == allFields
	names := args[1:]
	if fields {
		names = args[2:]
	}
	db, text, mixed := args[1], "", false
	if fields {
		text = c.readable(db)
	} else if db, text = c.databaseOf(names[0]); text == "" {
		text, mixed = c.sameDB(db, names[1:])
	}
	if text == "" {
		text = c.checkKeys(names, fields)
	}
	if text != "" {
		c.lookUp()
		c.fail(text)
		return
	}
	if mixed {
		c.lookUp()
		c.readMixed(cmd, names)
		return
	}
	c.join(cmd, db, names, fields)
}

// join adds the keys of a read to the current reading, after that is over if it cannot have them.
func (c *conn) join(cmd *command, db []byte, names [][]byte, fields bool) {
	b := &c.round.reading
	if len(b.pending) > 0 && (!bytes.Equal(b.db, db) || len(b.keys)+len(names) > c.server.maxKeys) {
		c.lookUp()
	}
	b.db = db
	from := len(b.keys)
	for _, name := range names {
		if !fields {
			name = c.keyOf(name)
		}
		b.keys = append(b.keys, name)
	}
	b.pending = append(b.pending, pendingRead{cmd, from, len(b.keys)})
}

// databaseOf returns the db of a key, and an error text if there is none, or if the client may not read it.
func (c *conn) databaseOf(name []byte) (db []byte, text string) {
	if db = c.selected; db == nil {
		i := bytes.IndexByte(name, '/')
		if i < 0 {
			return nil, errNoDB
		}
		db = name[:i]
	}
	return db, c.readable(db)
}

// keyOf returns the key in a name that databaseOf has accepted.
func (c *conn) keyOf(name []byte) []byte {
	if c.selected != nil {
		return name
	}
	return name[bytes.IndexByte(name, '/')+1:]
}

// sameDB checks the dbs of more keys. mixed reports whether they are of several dbs.
func (c *conn) sameDB(db []byte, names [][]byte) (text string, mixed bool) {
	if c.selected != nil {
		return "", false
	}
	for _, name := range names {
		if len(name) > len(db) && name[len(db)] == '/' && bytes.Equal(name[:len(db)], db) {
			continue
		}
		mixed = true
		if _, text = c.databaseOf(name); text != "" {
			return text, true
		}
	}
	return "", mixed
}

// checkKeys returns an error text if keys are too long or too many.
func (c *conn) checkKeys(names [][]byte, fields bool) string {
	if len(names) > c.server.maxKeys {
		return errTooManyKeys
	}
	for _, name := range names {
		if len(name) <= blocks.MaxKey {
			continue
		}
		if fields || len(c.keyOf(name)) > blocks.MaxKey {
			return errKeyTooLong
		}
	}
	return ""
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
}

// readOne answers a command by itself.
func (c *conn) readOne(p pendingRead) {
	b := &c.round.reading
	if p.cmd.answer == aValues || p.to-p.from > 1 || len(b.keys[p.from]) == 0 { // a URL has no empty key
		if o, ok := c.batch([]pendingRead{p}, b.keys[p.from:p.to]); !ok {
			c.failBatch(p, o)
		}
		return
	}
	c.single(p.cmd, b.keys[p.from])
}

// failBatch answers a command whose batch has no answer.
func (c *conn) failBatch(p pendingRead, o reads.Outcome) {
	b := &c.round.reading
	if o == reads.TooLarge && !p.cmd.answer.needsValue() {
		c.count(p.cmd, b.keys[p.from:p.to])
		return
	}
	c.fail(failures[o].text)
}

// readAll answers several commands from one batch. If that has no answer for a reason that need not concern all of its
// keys, each command is answered by itself.
func (c *conn) readAll() {
	b := &c.round.reading
	o, ok := c.batch(b.pending, b.keys)
	if ok {
		return
	}
	alone := o == reads.TooLarge || o == reads.Busy || o == reads.Unreadable || o == reads.Unreachable
	for _, p := range b.pending {
		// Those that need a node that is late would each wait for it again.
		if alone || o == reads.Late && c.server.reads.Holds(b.db, b.keys[p.from:p.to]) {
			c.readOne(p)
		} else {
			c.fail(failures[o].text)
		}
		c.flushIfFull()
	}
}

// batch looks keys up together, and answers commands from the values. If it returns false, it has answered none, for the
// reason o.
func (c *conn) batch(pending []pendingRead, keys [][]byte) (o reads.Outcome, ok bool) {
	b, r := &c.round.reading, &c.round.Read
	r.Begin(time.Now())
	defer r.Release()
	c.ask(b.db, nil)
	if o = r.DoBatch(&b.query, keys); o != reads.Found {
		r.Done(tracing.Answer{Status: status(o)})
		return o, false
	}
	version, base := r.Version, pending[0].from
	r.LetGo() // the values are copies
	size := int64(0)
	for _, v := range r.Values {
		size += int64(len(v))
	}
	r.Done(tracing.Answer{Status: 200, Bytes: size})
	for _, p := range pending {
		c.answerFrom(b.db, version)
		c.renderAll(p.cmd.answer, r.Values[p.from-base:p.to-base])
	}
	return o, true
}

// ask sets the query of a read.
func (c *conn) ask(db, key []byte) {
	b := &c.round.reading
	b.query = reads.Query{DB: db, Key: key, Redis: true}
	if s := c.session(db); s != nil {
		b.query.AtLeast, b.query.Exact = s.atLeast, s.exact
	}
	if c.server.opts.Proxied && key != nil {
		b.path = reads.AppendEscaped(append(reads.AppendEscaped(append(b.path[:0], '/'), db), '/'), key)
		b.query.Path = b.path
	}
}

// renderAll answers a read from the values of its keys.
func (c *conn) renderAll(a answer, values [][]byte) {
	switch a {
	case aValue:
		c.value(values[0])
	case aLength:
		c.w.integer(int64(len(values[0])))
	case aCount:
		n := int64(0)
		for _, v := range values {
			if v != nil {
				n++
			}
		}
		c.w.integer(n)
	case aValues:
		c.w.array(len(values))
		for _, v := range values {
			c.value(v)
		}
	}
	c.flushIfFull()
}

// count answers a command that needs no values, one key after the other in the same version: the values are too large to
// be read together.
func (c *conn) count(cmd *command, keys [][]byte) {
	var total int64
	var version []byte
	o := reads.Gone
	for try := 0; o == reads.Gone && try < countTries; try++ {
		total, version, o = c.countOnce(keys)
		if s := c.session(c.round.reading.db); s != nil && s.exact != nil {
			break // the client has required the version
		}
	}
	if o > reads.Absent {
		c.fail(failures[o].text)
		return
	}
	c.answerFrom(c.round.reading.db, version)
	c.w.integer(total)
}

// countTries is how often keys are counted from the beginning because their version has been replaced meanwhile.
const countTries = 5

// countOnce counts the keys that exist in the current version.
func (c *conn) countOnce(keys [][]byte) (total int64, version []byte, o reads.Outcome) {
	b, r := &c.round.reading, &c.round.Read
	for i, key := range keys {
		r.Begin(time.Now())
		c.ask(b.db, key)
		b.query.Head = true
		if version != nil {
			b.query.Exact = version
		}
		if len(key) > 0 {
			o = r.Do(&b.query)
		} else if o = r.DoBatch(&b.query, keys[i:i+1]); o == reads.Found && r.Values[0] == nil { // a URL has no empty key
			o = reads.Absent
		}
		r.Done(tracing.Answer{Status: status(o)})
		if o == reads.Found {
			total++
		}
		version = bytes.Clone(r.Version)
		r.Release()
		if o > reads.Absent {
			return 0, nil, o
		}
	}
	return total, version, o
}

// readMixed answers a command with keys of several dbs, which are looked up in one batch for each db.
func (c *conn) readMixed(cmd *command, names [][]byte) {
	m := mixed{values: make([][]byte, len(names)), limit: math.MaxInt64}
	if cmd.answer.needsValue() {
		_, m.limit = c.server.reads.BatchLimits()
	}
	defer m.release(c)
	dbs, places := map[string]int{}, [][]int(nil)
	for i, name := range names {
		db, _ := c.databaseOf(name)
		n, seen := dbs[string(db)]
		if !seen {
			n = len(places)
			dbs[string(db)], places = n, append(places, nil)
		}
		places[n] = append(places[n], i)
	}
	for _, some := range places {
		if o := m.read(c, names, some); o != reads.Found {
			c.fail(failures[o].text)
			return
		}
	}
	c.answersFrom(m.dbs, m.versions)
	c.renderAll(cmd.answer, m.values)
}

// mixed is the state of readMixed.
type mixed struct {
	values        [][]byte
	size, limit   int64 // bytes of the values
	dbs, versions [][]byte
}

// read looks up the keys of one db, whose names are at the given places.
func (m *mixed) read(c *conn, names [][]byte, places []int) reads.Outcome {
	d := c.server.rounds.Get().(*round)
	c.mixed = append(c.mixed, d)
	b := &d.reading
	db, _ := c.databaseOf(names[places[0]])
	for _, i := range places {
		b.keys = append(b.keys, c.keyOf(names[i]))
	}
	b.query = reads.Query{DB: db, Redis: true}
	if s := c.session(db); s != nil {
		b.query.AtLeast, b.query.Exact = s.atLeast, s.exact
	}
	d.Begin(time.Now())
	o := d.DoBatch(&b.query, b.keys)
	d.Done(tracing.Answer{Status: status(o)})
	if o == reads.Found {
		for j, i := range places {
			m.values[i] = d.Values[j]
			m.size += int64(len(d.Values[j]))
		}
		m.dbs, m.versions = append(m.dbs, db), append(m.versions, d.Version)
	}
	d.LetGo()
	if m.size > m.limit {
		o = reads.TooLarge
	}
	return o
}

func (m *mixed) release(c *conn) {
	for _, d := range c.mixed {
		d.end(c.server)
	}
	c.mixed = nil
}
