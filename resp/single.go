package resp

import (
	"bytes"
	"io"
	"strconv"
	"sync"
	"time"

	"sequins/reads"
	"sequins/tracing"
)

// single answers a command for one key.
func (c *conn) single(cmd *command, key []byte) {
	b, r := &c.round.reading, &c.round.Read
	r.Begin(time.Now())
	defer r.Release()
	c.ask(b.db, key)
	b.query.Head = !cmd.answer.needsValue()
	c.respond(cmd.answer, r.Do(&b.query))
}

// respond answers a command with the outcome of Do.
func (c *conn) respond(a answer, o reads.Outcome) {
	r := &c.round.Read
	switch {
	case o == reads.Absent:
		c.answerFrom(c.round.reading.db, r.Version)
		c.renderAll(a, noValue)
	case o != reads.Found:
		c.fail(failures[o].text)
	case r.Length < 0: // a peer that speaks another dialect of HTTP
		o = reads.Unreachable
		c.fail(failures[o].text)
	case !a.needsValue():
		c.answerFrom(c.round.reading.db, r.Version)
		if a == aLength {
			c.w.integer(r.Length)
		} else {
			c.w.integer(1)
		}
	case r.Bytes == nil && r.Length > 0:
		c.stream(0, r.Length)
		return
	default:
		c.answerFrom(c.round.reading.db, r.Version)
		c.w.bulk(r.Bytes)
		r.LetGo()
		r.Done(tracing.Answer{Status: 200, Bytes: int64(len(r.Bytes))})
		c.flushIfFull()
		return
	}
	r.Done(tracing.Answer{Status: status(o)})
}

var noValue = [][]byte{nil}

var streamBuffers = sync.Pool{New: func() any { b := make([]byte, writeChunk); return &b }}

// stream answers with n bytes of a large value from an offset on, while they are read. If the first part cannot be read
// here, other nodes are asked. After the first part an error closes the connection.
func (c *conn) stream(from, n int64) {
	r := &c.round.Read
	buffer := streamBuffers.Get().(*[]byte)
	defer streamBuffers.Put(buffer)
	part, err := c.readPart(*buffer, from, n)
	if err != nil && r.Body().Outcome == reads.Unreadable {
		o := r.Retry()
		switch {
		case o != reads.Found || r.Length < from+n:
			c.failRead(o)
			return
		case r.Bytes != nil:
			c.answerFrom(c.round.reading.db, r.Version)
			c.w.bulk(r.Bytes[from : from+n])
			r.Done(tracing.Answer{Status: 200, Bytes: n})
			return
		}
		part, err = c.readPart(*buffer, from, n)
	}
	if err != nil {
		c.failRead(r.Body().Outcome)
		return
	}
	c.answerFrom(c.round.reading.db, r.Version)
	c.w.header('$', n)
	c.flush()
	sent := int64(0)
	for {
		c.write(part)
		if sent += int64(len(part)); sent == n || c.err != nil {
			break
		}
		part = (*buffer)[:min(int64(len(*buffer)), n-sent)]
		if _, err = io.ReadFull(r.Body(), part); err != nil {
			c.err = err
			break
		}
	}
	c.w.out = append(c.w.out, '\r', '\n')
	code := 200
	if c.err != nil {
		code = 499
		if o := r.Body().Outcome; o != reads.Found {
			code = status(o)
		}
	}
	r.Done(tracing.Answer{Status: code, Bytes: sent})
}

// readPart reads the first part of n bytes from an offset on.
func (c *conn) readPart(buffer []byte, from, n int64) ([]byte, error) {
	r := &c.round.Read
	body := r.Body()
	var err error
	if r.Peer != "" {
		_, err = io.CopyN(io.Discard, body, from)
	} else {
		_, err = body.Seek(from, io.SeekStart)
	}
	part := buffer[:min(int64(len(buffer)), n)]
	if err == nil {
		_, err = io.ReadFull(body, part)
	}
	return part, err
}

// failRead answers with the reason why a value cannot be read.
func (c *conn) failRead(o reads.Outcome) {
	if o <= reads.Conditional {
		o = reads.Unreachable
	}
	c.fail(failures[o].text)
	c.round.Done(tracing.Answer{Status: status(o)})
}

// parseInteger parses an integer as Redis does: without a plus sign, leading zeros and blanks.
func parseInteger(b []byte) (n int64, ok bool) {
	n, err := strconv.ParseInt(string(b), 10, 64)
	if err != nil || b[0] == '+' {
		return 0, false
	}
	digits := bytes.TrimPrefix(b, []byte{'-'})
	return n, string(b) == "0" || digits[0] != '0'
}

// getRange answers GETRANGE.
func (c *conn) getRange(args [][]byte) {
	start, ok1 := parseInteger(args[2])
	end, ok2 := parseInteger(args[3])
	if !ok1 || !ok2 {
		c.fail(errInteger)
		return
	}
	db, text := c.databaseOf(args[1])
	if text == "" {
		text = c.checkKeys(args[1:2], false)
	}
	if text != "" {
		c.fail(text)
		return
	}
	b, r := &c.round.reading, &c.round.Read
	b.db = db
	defer b.clear()
	key := c.keyOf(args[1])
	r.Begin(time.Now())
	defer r.Release()
	c.ask(db, key)
	if len(key) == 0 {
		c.rangeOfEmptyKey(start, end)
		return
	}
	c.respondRange(r.Do(&b.query), start, end)
}

// respondRange answers GETRANGE with the outcome of Do.
func (c *conn) respondRange(o reads.Outcome, start, end int64) {
	b, r := &c.round.reading, &c.round.Read
	if o == reads.Found && r.Length < 0 {
		o = reads.Unreachable
	}
	if o > reads.Absent {
		c.failRead(o)
		return
	}
	if o == reads.Absent {
		r.Length = 0
	}
	from, n := part(r.Length, start, end)
	if n > 0 && r.Bytes == nil {
		c.stream(from, n)
		return
	}
	c.answerFrom(b.db, r.Version)
	c.w.bulk(r.Bytes[min(from, int64(len(r.Bytes))):][:n])
	r.LetGo()
	r.Done(tracing.Answer{Status: status(o), Bytes: n})
	c.flushIfFull()
}

// rangeOfEmptyKey answers GETRANGE for the key of no bytes, which only batches can request from other nodes.
func (c *conn) rangeOfEmptyKey(start, end int64) {
	b, r := &c.round.reading, &c.round.Read
	o := r.DoBatch(&b.query, [][]byte{{}})
	if o != reads.Found {
		c.failRead(o)
		return
	}
	value := r.Values[0]
	from, n := part(int64(len(value)), start, end)
	c.answerFrom(b.db, r.Version)
	c.w.bulk(value[min(from, int64(len(value))):][:n])
	r.LetGo()
	r.Done(tracing.Answer{Status: 200, Bytes: n})
	c.flushIfFull()
}

// part returns the offset and the length of a range in a value, as Redis does: both ends are included, negative ones are
// counted from the end.
func part(length, start, end int64) (from, n int64) {
	if start < 0 && end < 0 && start > end {
		return 0, 0
	}
	if start < 0 {
		start = max(length+start, 0)
	}
	if end < 0 {
		end = max(length+end, 0)
	}
	if end = min(end, length-1); start > end || length == 0 {
		return 0, 0
	}
	return start, end - start + 1
}
