// Package lookahead owns the buffer between a file and its records: a reader of a format asks for bytes, looks at them where they
// lie, and skips them. The buffer grows by what a file has, not by lengths that it claims.
package lookahead

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

// Reader reads ahead of what is used. Slices of Bytes are valid until the next Fill or Reset.
type Reader struct {
	r        io.Reader
	buf      []byte // buf[pos:end] is not used yet
	pos, end int
	base     int64 // offset in the file of buf[0]
	err      error // why nothing more can be read: io.EOF, or the reader's error
	first    *[bufferSize]byte
}

// firstBuffers are the initial buffers of Readers. Most never need another.
var firstBuffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}

// Reset starts to read r, the next byte of which is at an offset. It keeps the buffer.
func (in *Reader) Reset(r io.Reader, offset int64) {
	*in = Reader{r: r, base: offset, buf: in.buf, first: in.first}
}

// Close releases the buffer. Nothing can be read afterwards: err takes the place of the reader's errors.
func (in *Reader) Close(err error) {
	if in.first != nil {
		firstBuffers.Put(in.first)
	}
	*in = Reader{base: in.Offset(), err: err}
}

// Offset returns the offset of the next unused byte.
func (in *Reader) Offset() int64 { return in.base + int64(in.pos) }

// ReadTo returns the offset behind the last byte that was read.
func (in *Reader) ReadTo() int64 { return in.base + int64(in.end) }

// Bytes returns the unused bytes in the buffer.
func (in *Reader) Bytes() []byte { return in.buf[in.pos:in.end] }

// Len returns the number of unused bytes in the buffer.
func (in *Reader) Len() int { return in.end - in.pos }

// Skip uses n bytes of the buffer.
func (in *Reader) Skip(n int) { in.pos += n }

// Err returns why Fill has failed: io.EOF, or the reader's error.
func (in *Reader) Err() error { return in.err }

// Fill makes at least n unused bytes available. If fewer are left, it makes those available and returns false; Err
// is the reason.
func (in *Reader) Fill(n int) bool { return in.end-in.pos >= n || in.fill(n) }

func (in *Reader) fill(n int) bool {
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
func (in *Reader) makeRoom() {
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
func (in *Reader) read() {
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
