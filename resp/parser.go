package resp

import (
	"bytes"
	"fmt"
)

// Limits of the protocol, which are those of Redis.
const (
	maxInline    = 64 << 10  // bytes of an inline command
	maxMultibulk = 1 << 20   // arguments of a command
	maxBulk      = 512 << 20 // bytes of an argument
	maxDigits    = 20        // of a length

	// Of clients that must authenticate and have not.
	maxStrangerArgs = 10
	maxStrangerBulk = 16 << 10
	// maxStrangerTotal is how many bytes of all arguments are kept. The buffer then stays so small that it is not counted,
	// and such clients cannot use up the memory for commands.
	maxStrangerTotal = 8 << 10
)

// limits are what a parser keeps of a command. A command beyond them is received and dropped, and has an error as its
// answer.
type limits struct {
	args  int   // arguments
	bulk  int64 // bytes of an argument
	total int64 // bytes of all arguments
}

// protocolError is an error after which the connection is closed, as the beginning of the next command is unknown.
type protocolError string

func (e protocolError) Error() string { return "Protocol error: " + string(e) }

const (
	errMultibulk         = protocolError("invalid multibulk length")
	errBulk              = protocolError("invalid bulk length")
	errBulkEnd           = protocolError("expected CRLF after an argument")
	errStrangerMultibulk = protocolError("unauthenticated multibulk length")
	errStrangerBulk      = protocolError("unauthenticated bulk length")
	errInlineSize        = protocolError("too big inline request")
	errInlineMemory      = protocolError("the commands of all clients need too much memory")
	errQuotes            = protocolError("unbalanced quotes in request")
)

// refusal is the reason why the arguments of a command were dropped.
type refusal uint8

const (
	kept         refusal = iota
	tooManyArgs          // more than limits.args
	argTooLong           // one is longer than limits.bulk
	argsTooLarge         // all together are larger than limits.total
	noMemory             // the commands of all connections need too much memory
)

// received is a command with its arguments, which are parts of the parser's buffer, valid until the next call of room.
type received struct {
	args    [][]byte // if the command was refused, only its name, if that has arrived before
	refused refusal
}

// parser takes the bytes of a connection apart into commands. It keeps its state between two segments, so that a byte is
// looked at once however the bytes arrive.
//
// buf[begin:r] is the part of the current command that was parsed, buf[r:w] has arrived and was not parsed.
type parser struct {
	limits   limits
	stranger bool // the client must authenticate first
	buf      []byte
	begin    int
	r, w     int
	searched int  // of an inline command: there is no line end before
	full     bool // there is no memory for more of an inline command

	left    int    // arguments of the current command to come; 0 between two commands
	bulk    int64  // bytes of the argument to come; -1 before its length
	spans   []span // its arguments so far
	total   int64  // their bytes
	refused refusal
	name    []byte // of a refused command

	argv [][]byte // the arguments of the commands since the last call of room
}

// span is a part of the buffer, from begin on.
type span struct{ from, to int }

// next returns the next command in the buffer. ok is false if it is not complete; room then makes room for more bytes.
func (p *parser) next() (cmd received, ok bool, err error) {
	for p.left == 0 {
		p.begin = p.r
		switch {
		case p.r == p.w:
			return received{}, false, nil
		case p.buf[p.r] != '*':
			cmd.args, ok, err = p.inline()
			if ok && len(cmd.args) == 0 {
				continue
			}
			return cmd, ok, err
		}
		if ok, err := p.multibulk(); !ok || err != nil {
			return received{}, false, err
		}
	}
	for p.left > 0 {
		if ok, err := p.argument(); !ok || err != nil {
			return received{}, false, err
		}
	}
	return p.command(), true, nil
}

// multibulk parses the number of arguments.
func (p *parser) multibulk() (ok bool, err error) {
	n, ok, err := p.length(errMultibulk)
	switch {
	case !ok || err != nil:
		return false, err
	case n > maxMultibulk:
		return false, errMultibulk
	case n > maxStrangerArgs && p.stranger:
		return false, errStrangerMultibulk
	}
	p.left, p.bulk = int(max(n, 0)), -1 // Redis ignores empty and negative commands
	p.spans, p.total, p.refused, p.name = p.spans[:0], 0, kept, nil
	if p.left > p.limits.args {
		p.refuse(tooManyArgs)
	}
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

// argument parses the next argument.
func (p *parser) argument() (ok bool, err error) {
	if p.bulk < 0 {
		if ok, err := p.bulkLength(); !ok || err != nil {
			return false, err
		}
	}
	if p.refused != kept {
		p.drop()
	}
	if int64(p.w-p.r) < p.bulk+2 {
		return false, nil
	}
	end := p.r + int(p.bulk)
	if p.buf[end] != '\r' || p.buf[end+1] != '\n' {
		return false, errBulkEnd
	}
	if p.refused == kept {
		p.spans = append(p.spans, span{p.r - p.begin, end - p.begin})
	}
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
		return false, protocolError(fmt.Sprintf("expected '$', got '%c'", c))
	}
	n, ok, err := p.length(errBulk)
	switch {
	case !ok || err != nil:
		return false, err
	case n < 0 || n > maxBulk:
		return false, errBulk
	case n > maxStrangerBulk && p.stranger:
		return false, errStrangerBulk
	}
	p.bulk = n
	if p.total += n; p.refused != kept {
		return true, nil
	}
	if n > p.limits.bulk {
		p.refuse(argTooLong)
	} else if p.total > p.limits.total || p.stranger && p.total > maxStrangerTotal {
		p.refuse(argsTooLarge)
	}
	return true, nil
}

// refuse makes the parser drop the rest of the current command, except its name.
func (p *parser) refuse(why refusal) {
	p.refused = why
	if len(p.spans) > 0 {
		p.name = bytes.Clone(p.arg(p.spans[0]))
	}
	p.spans = p.spans[:0]
}

// drop drops the bytes of a refused argument that have arrived.
func (p *parser) drop() {
	n := max(min(p.bulk, int64(p.w-p.r)), 0)
	p.r, p.bulk = p.r+int(n), p.bulk-n
	p.begin = p.r
}

func (p *parser) arg(s span) []byte { return p.buf[p.begin+s.from : p.begin+s.to : p.begin+s.to] }

// command returns the command whose last argument has arrived.
func (p *parser) command() received {
	from := len(p.argv)
	for _, s := range p.spans {
		p.argv = append(p.argv, p.arg(s))
	}
	if p.refused != kept && p.name != nil {
		p.argv = append(p.argv, p.name)
	}
	p.begin = p.r
	return received{args: p.argv[from:len(p.argv):len(p.argv)], refused: p.refused}
}

const (
	leastBuffer = 4 << 10  // of an idle connection
	readAhead   = 16 << 10 // of a connection with pipelines
	keptArgs    = 1 << 10  // capacity of slices that is kept
)

// room returns the free part of the buffer, and makes the buffer larger if there is little of it. Commands that next has
// returned are no longer valid. more must return true for a buffer of more than readAhead bytes; otherwise the current
// command is refused, and if it is an inline command, nothing is free.
func (p *parser) room(more func(size int) bool) []byte {
	clear(p.argv)
	if p.argv = p.argv[:0]; cap(p.argv) > keptArgs {
		p.argv = nil
	}
	if cap(p.spans) > keptArgs && p.left == 0 {
		p.spans = nil
	}
	full := p.w == len(p.buf)
	p.compact()
	switch size := max(2*len(p.buf), leastBuffer); {
	case !full || p.w < len(p.buf)/2 && len(p.buf) >= readAhead:
	case size > readAhead && !more(size):
		if p.left == 0 {
			p.full = true
			break
		}
		p.refuse(noMemory)
		p.drop()
		p.compact()
	default:
		p.resize(size)
	}
	return p.buf[p.w:]
}

// compact moves the current command to the beginning of the buffer.
func (p *parser) compact() {
	n := p.begin
	if n == 0 {
		return
	}
	copy(p.buf, p.buf[n:p.w])
	p.begin, p.r, p.w = 0, p.r-n, p.w-n
	p.searched = max(p.searched-n, 0)
}

func (p *parser) resize(size int) {
	fresh := make([]byte, size)
	copy(fresh, p.buf[:p.w])
	p.buf = fresh
}

// shrink frees a large buffer of which little is used, and reports whether there was one. Commands that next has returned
// are no longer valid.
func (p *parser) shrink() bool {
	if len(p.buf) <= readAhead || p.w-p.begin > readAhead/2 {
		return false
	}
	p.compact()
	if p.w == 0 {
		p.r, p.searched = 0, 0
		p.resize(leastBuffer)
	} else {
		p.resize(readAhead)
	}
	return true
}

// between reports whether nothing of a next command has arrived.
func (p *parser) between() bool { return p.left == 0 && p.r == p.w }
