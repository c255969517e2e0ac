package resp

import (
	"bytes"
	"fmt"
)

// Limits of the protocol. Those without a client's memory in them are those of Redis.
const (
	maxInline    = 1 << 10   // bytes of an inline command
	maxMultibulk = 1 << 20   // arguments of a command
	maxBulk      = 512 << 20 // bytes of an argument
	maxDigits    = 20        // of a length
)

// limits are what a client may send in a command.
type limits struct {
	args  int   // arguments
	bulk  int64 // bytes of an argument
	total int64 // bytes of all arguments
}

// strangerLimits are those of clients that must authenticate and have not. Their buffers stay so small that they are not counted, and such
// clients cannot use up the memory for commands.
var strangerLimits = limits{args: 10, bulk: 8 << 10, total: 8 << 10}

// protocolError is the text of an error after which the connection is closed: the beginning of the next command is unknown, or far away.
type protocolError string

func (e protocolError) Error() string { return string(e) }

const (
	errMultibulk  = protocolError("ERR Protocol error: invalid multibulk length")
	errBulk       = protocolError("ERR Protocol error: invalid bulk length")
	errBulkEnd    = protocolError("ERR Protocol error: expected CRLF after an argument")
	errInlineSize = protocolError("ERR Protocol error: too big inline request")
	errQuotes     = protocolError("ERR Protocol error: quotes in an inline request")
	errArgs       = protocolError("ERR too many arguments in one command: the limit is that of keys, and 10 before AUTH")
	errArg        = protocolError("ERR an argument is too long: the limit is that of a key, and 8 KiB before AUTH")
	errTotal      = protocolError("ERR the arguments are too large: the limit is batch.max_bytes, and 8 KiB before AUTH")
	errNoMemory   = protocolError("TRYAGAIN the requests of all clients need too much memory at the moment")
)

// parser takes the bytes of a connection apart into commands. It keeps its state between two segments, so that a byte is
// looked at once however the bytes arrive.
//
// buf[begin:r] is the part of the current command that was parsed, buf[r:w] has arrived and was not parsed.
type parser struct {
	limits limits
	buf    []byte
	begin  int
	r, w   int
	full   bool // there is no memory for the rest of the current command

	left  int    // arguments of the current command to come; 0 between two commands
	bulk  int64  // bytes of the argument to come; -1 before its length
	spans []span // its arguments so far
	total int64  // their bytes

	argv [][]byte // the arguments of the commands since the last call of room
}

// span is a part of the buffer, from begin on.
type span struct{ from, to int }

// next returns the arguments of the next command in the buffer, which are valid until the next call of room. ok is false if it is not
// complete; room then makes room for more bytes.
func (p *parser) next() (args [][]byte, ok bool, err error) {
	if p.full {
		return nil, false, errNoMemory
	}
	for p.left == 0 {
		p.begin = p.r
		switch {
		case p.r == p.w:
			return nil, false, nil
		case p.buf[p.r] == '*':
			if ok, err := p.multibulk(); !ok || err != nil {
				return nil, false, err
			}
		default:
			if args, ok, err = p.inline(); !ok || len(args) > 0 {
				return args, ok, err
			}
		}
	}
	for p.left > 0 {
		if ok, err := p.argument(); !ok || err != nil {
			return nil, false, err
		}
	}
	from := len(p.argv)
	for _, s := range p.spans {
		p.argv = append(p.argv, p.buf[p.begin+s.from:p.begin+s.to:p.begin+s.to])
	}
	p.begin = p.r
	return p.argv[from:len(p.argv):len(p.argv)], true, nil
}

// inline parses a command that is a line of words without quotes, as health checks send it, and people with netcat.
func (p *parser) inline() (args [][]byte, ok bool, err error) {
	line, _, ok := bytes.Cut(p.buf[p.r:p.w], []byte{'\n'})
	switch {
	case len(line) > maxInline:
		return nil, false, errInlineSize
	case !ok:
		return nil, false, nil
	case bytes.ContainsAny(line, `"'`):
		return nil, false, errQuotes
	}
	p.r += len(line) + 1
	return bytes.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == '\t' || r == '\r' }), true, nil
}

// multibulk parses the number of arguments.
func (p *parser) multibulk() (ok bool, err error) {
	n, ok, err := p.length(errMultibulk)
	switch {
	case !ok || err != nil:
		return false, err
	case n > maxMultibulk:
		return false, errMultibulk
	case n > int64(p.limits.args):
		return false, errArgs
	}
	p.left, p.bulk = int(max(n, 0)), -1 // Redis ignores empty and negative commands
	p.spans, p.total = p.spans[:0], 0
	return true, nil
}

// length parses the number in a line, behind its first byte, and the end of the line.
func (p *parser) length(invalid error) (n int64, ok bool, err error) {
	i, negative := p.r+1, false
	if i < p.w && p.buf[i] == '-' {
		i, negative = i+1, true
	}
	first := i
	for ; i < p.w && p.buf[i]-'0' <= 9; i++ {
		if i-first == maxDigits-2 || i > first && p.buf[first] == '0' { // beyond 18 digits it is too large anyway
			return 0, false, invalid
		}
		n = 10*n + int64(p.buf[i]-'0')
	}
	switch {
	case i < p.w && (i == first || p.buf[i] != '\r'), i+1 < p.w && p.buf[i+1] != '\n', negative && n == 0 && i > first:
		return 0, false, invalid
	case i+1 >= p.w:
		return 0, false, nil
	}
	p.r = i + 2
	if negative {
		n = -n
	}
	return n, true, nil
}

func (p *parser) argument() (ok bool, err error) {
	if p.bulk < 0 {
		if ok, err := p.bulkLength(); !ok || err != nil {
			return false, err
		}
	}
	if int64(p.w-p.r) < p.bulk+2 {
		return false, nil
	}
	end := p.r + int(p.bulk)
	if p.buf[end] != '\r' || p.buf[end+1] != '\n' {
		return false, errBulkEnd
	}
	p.spans = append(p.spans, span{p.r - p.begin, end - p.begin})
	p.r = end + 2
	p.left, p.bulk = p.left-1, -1
	return true, nil
}

// bulkLength parses the length of the next argument.
func (p *parser) bulkLength() (ok bool, err error) {
	if p.r == p.w {
		return false, nil
	}
	if c := p.buf[p.r]; c != '$' {
		if c < ' ' || c > '~' {
			c = '?'
		}
		return false, protocolError(fmt.Sprintf("ERR Protocol error: expected '$', got '%c'", c))
	}
	n, ok, err := p.length(errBulk)
	switch {
	case !ok || err != nil:
		return false, err
	case n < 0 || n > maxBulk:
		return false, errBulk
	case n > p.limits.bulk:
		return false, errArg
	case p.total+n > p.limits.total:
		return false, errTotal
	}
	p.bulk, p.total = n, p.total+n
	return true, nil
}

const (
	leastBuffer = 4 << 10  // of an idle connection
	readAhead   = 16 << 10 // of a connection with pipelines
	keptArgs    = 1 << 10  // capacity of slices that is kept
)

// room returns the free part of the buffer. It makes the buffer larger if there is little of it, and a large one smaller of which little is
// used. Commands that next has returned are no longer valid. more is called when the buffer gets or had more than readAhead bytes. If it
// returns false for a larger one, nothing is free, and next fails.
func (p *parser) room(more func(size int) bool) []byte {
	clear(p.argv)
	if p.argv = p.argv[:0]; cap(p.argv) > keptArgs {
		p.argv = nil
	}
	if cap(p.spans) > keptArgs && p.left == 0 {
		p.spans = nil
	}
	full, size := p.w == len(p.buf), len(p.buf)
	if n := p.begin; n > 0 { // move the current command to the beginning
		copy(p.buf, p.buf[n:p.w])
		p.begin, p.r, p.w = 0, p.r-n, p.w-n
	}
	switch {
	case size > readAhead && p.w == 0:
		size = leastBuffer
	case size > readAhead && p.w <= readAhead/2:
		size = readAhead
	case full && (p.w >= size/2 || size < readAhead):
		size = max(2*size, leastBuffer)
	default:
		return p.buf[p.w:]
	}
	if max(size, len(p.buf)) > readAhead && !more(size) {
		p.full = true
		return nil
	}
	fresh := make([]byte, size)
	copy(fresh, p.buf[:p.w])
	p.buf = fresh
	return p.buf[p.w:]
}

// between reports whether nothing of a next command has arrived.
func (p *parser) between() bool { return p.left == 0 && p.r == p.w }
