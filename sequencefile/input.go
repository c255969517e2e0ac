package sequencefile

import (
	"errors"
	"io"
	"sync"
)

// bufferSize is how much of a file is read at a time: large enough that the cost of a Read does not show, small enough
// that the records sliced from the buffer are still in the processor's second-level cache.
const bufferSize = 128 << 10

// maxEmptyReads is how many times a reader may return neither data nor an error, as in package bufio.
const maxEmptyReads = 100

var errBadCount = errors.New("reader returned an impossible count")

// input is the buffer between a file and the records in it. What fill has made available lies contiguously in
// buf[pos:end]; whoever has used bytes advances pos. Slices into buf are valid until the next fill.
type input struct {
	r        io.Reader
	buf      []byte
	pos, end int
	base     int64 // offset in the file of buf[0]
	err      error // why there is nothing more to read: io.EOF, or what the reader said
	first    *[bufferSize]byte
}

// firstBuffers are the buffers that inputs begin with. Most never need another.
var firstBuffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}

// close gives the buffer up. There is nothing more to be read then.
func (in *input) close() {
	if in.first != nil {
		firstBuffers.Put(in.first)
	}
	*in = input{base: in.offset(), err: errClosed}
}

// offset is the place in the file of the next unused byte.
func (in *input) offset() int64 { return in.base + int64(in.pos) }

// len is the number of unused bytes that have been read.
func (in *input) len() int { return in.end - in.pos }

// fill makes at least n unused bytes available. If there are not so many left, it returns false; then in.err says why,
// and what there is is available.
func (in *input) fill(n int) bool {
	for in.end-in.pos < n {
		if in.err != nil {
			return false
		}
		in.makeRoom()
		in.read()
	}
	return true
}

// makeRoom moves the unused bytes to the front, and grows a buffer that is full of them. It never grows by more than
// what really arrived, whatever length a file announces.
func (in *input) makeRoom() {
	if in.pos > 0 {
		in.end = copy(in.buf, in.buf[in.pos:in.end])
		in.base += int64(in.pos)
		in.pos = 0
	}
	if in.end < len(in.buf) {
		return
	}
	if in.first == nil {
		in.first = firstBuffers.Get().(*[bufferSize]byte)
		in.buf = in.first[:]
		return
	}
	buf := make([]byte, 2*len(in.buf))
	copy(buf, in.buf)
	in.buf = buf
}

// read appends to the buffer what one Read gives.
func (in *input) read() {
	room := in.buf[in.end:]
	for range maxEmptyReads {
		n, err := in.r.Read(room)
		if n < 0 || n > len(room) {
			in.err = errBadCount
			return
		}
		in.end += n
		in.err = err
		if n > 0 || err != nil {
			return
		}
	}
	in.err = io.ErrNoProgress
}
