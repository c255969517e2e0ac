package resp

import (
	"io"
	"sync"

	"sequins/observe/tracing"
	"sequins/reads"
)

// respond answers a command for one key with the outcome of Do.
func (c *conn) respond(a answer, o reads.Outcome) {
	r := &c.round.Read
	size := int64(0)
	switch {
	case o == reads.Found && r.Length < 0: // a peer that speaks another dialect of HTTP
		o = reads.Unreachable
		c.w.fail(failures[o].text)
	case o > reads.Absent:
		c.w.fail(failures[o].text)
	case o == reads.Absent:
		c.render(a, noValue)
	case a != aValue:
		c.w.presence(a, true, int(r.Length))
	case r.Bytes == nil && r.Length > 0:
		c.stream()
		return
	default:
		c.w.bulk(r.Bytes)
		size = int64(len(r.Bytes))
		r.LetGo()
	}
	r.Done(tracing.Answer{Status: status(o), Bytes: size})
	c.flushIfFull()
}

var noValue = [][]byte{nil}

var streamBuffers = sync.Pool{New: func() any { b := make([]byte, writeChunk); return &b }}

// stream answers with a large value while it is read. If the first part cannot be read here, other nodes are asked. After the first part an error closes
// the connection.
func (c *conn) stream() {
	r := &c.round.Read
	buffer := streamBuffers.Get().(*[]byte)
	defer streamBuffers.Put(buffer)
	part := (*buffer)[:min(int64(len(*buffer)), r.Length)]
	if _, err := io.ReadFull(r.Body(), part); err != nil {
		c.respond(aValue, r.Retry())
		return
	}
	c.w.header('$', r.Length)
	c.flush()
	sent := int64(0)
	for c.err == nil {
		c.write(part)
		if sent += int64(len(part)); sent == r.Length || c.err != nil {
			break
		}
		part = part[:min(int64(len(part)), r.Length-sent)]
		_, c.err = io.ReadFull(r.Body(), part)
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
