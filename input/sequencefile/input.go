package sequencefile

import (
	"errors"
	"io"
	"sync"
)

// bufferSize is the size of reads: large enough to amortize the cost of a Read, small enough that records in the buffer
// are still in the second-level cache.
const bufferSize = 128 << 10

// maxEmptyReads is how many times a reader may return neither data nor an error, as in package bufio.
const maxEmptyReads = 100

var errBadCount = errors.New("reader returned an impossible count")

// input is the buffer between a file and its records. fill makes bytes available in buf[pos:end]; the caller advances
// pos. Slices of buf are valid until the next fill.
type input struct {
	r        io.Reader
	buf      []byte
	pos, end int
	base     int64 // offset in the file of buf[0]
	err      error // why nothing more can be read: io.EOF, or the reader's error
	first    *[bufferSize]byte
}

// firstBuffers are the initial buffers of inputs. Most never need another.
var firstBuffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}

// close releases the buffer. Nothing can be read afterwards.
func (in *input) close() {
	if in.first != nil {
		firstBuffers.Put(in.first)
	}
	*in = input{base: in.offset(), err: errClosed}
}

// offset returns the file offset of the next unused byte.
func (in *input) offset() int64 { return in.base + int64(in.pos) }

// len returns the number of unused bytes in the buffer.
func (in *input) len() int { return in.end - in.pos }

// fill makes at least n unused bytes available. If fewer are left, it makes those available and returns false; in.err
// is the reason.
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

// makeRoom moves the unused bytes to the front, and grows a full buffer. Growth is proportional to the bytes received,
// not to lengths in the file.
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

// read appends the result of one Read to the buffer.
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
