package blocks

import (
	"encoding/binary"
	"fmt"
	"io"
	"sync"

	"github.com/cespare/xxhash/v2"

	"sequins/blocks/internal/decode"
)

// Value is where a lookup found its bytes: in memory, or in the chunks of a large value.
type Value struct {
	small []byte
	large *largeValue
}

// largeValue is a value of more than LargeValue bytes: chunks that lie one behind the other.
type largeValue struct {
	r      *Reader
	length int64
	hash   uint64
	first  int64    // offset of the first chunk
	stored []uint32 // length of each chunk in the file
	spans  spanReader
}

// Len is the value's length in bytes.
func (v Value) Len() int64 {
	if v.large != nil {
		return v.large.length
	}
	return int64(len(v.small))
}

// Large says that the value must be read with Section; Bytes is nil.
func (v Value) Large() bool { return v.large != nil }

// Reader is the block that Section reads a large value from; nil for other values.
func (v Value) Reader() *Reader {
	if v.large == nil {
		return nil
	}
	return v.large.r
}

// Bytes is the value, up to LargeValue bytes, where it lies in the page. It must not be changed.
func (v Value) Bytes() []byte { return v.small }

// Hash is the XXH64 of the value. That of a large value was taken when the block was written.
func (v Value) Hash() uint64 {
	if v.large != nil {
		return v.large.hash
	}
	return xxhash.Sum64(v.small)
}

// parseLarge decodes the page of a large value. The key lies in payload.
func (r *Reader) parseLarge(payload []byte) (key []byte, v *largeValue, err error) {
	d := decode.New(payload)
	d.U16()
	key = d.Bytes(int(d.U32()))
	v = &largeValue{r: r, length: int64(d.U64()), hash: d.U64(), first: int64(d.U64())}
	if d.Err() != nil || v.length <= LargeValue || v.length > MaxValue || int64(d.Len()) != 4*((v.length+chunkSize-1)/chunkSize) {
		return nil, nil, errPage
	}
	table := d.Rest()
	v.stored = make([]uint32, len(table)/4)
	end := v.first
	for i := range v.stored {
		n := binary.LittleEndian.Uint32(table[4*i:])
		if n > maxStored {
			return nil, nil, errPage
		}
		v.stored[i] = n
		end += int64(n)
	}
	if v.first < 0 || end < v.first || end > r.footer.index.offset {
		return nil, nil, errPage
	}
	return key, v, nil
}

// Section streams n bytes of the value from off on. Every chunk is verified before a byte of it
// is returned; damage is ErrCorrupt. The stream must be closed, before its Reader is.
func (v Value) Section(off, n int64) io.ReadCloser {
	s := &valueStream{v: v, off: off, end: min(off+n, v.Len())}
	if v.large != nil {
		s.buf = chunkBuffers.Get().(*Scratch)
		s.next = int(off / chunkSize)
		s.at = v.large.first
		for _, stored := range v.large.stored[:min(s.next, len(v.large.stored))] {
			s.at += int64(stored)
		}
	}
	return s
}

var chunkBuffers = sync.Pool{New: func() any { return new(Scratch) }}

// valueStream reads a value from off to end.
type valueStream struct {
	v        Value
	off, end int64
	rest     []byte // of the chunk that has been unpacked
	next     int    // the chunk after it
	at       int64  // and its offset in the file
	buf      *Scratch
	err      error
}

// Read gives what is left of one chunk at most.
func (s *valueStream) Read(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	if s.off >= s.end {
		return 0, io.EOF
	}
	if len(s.rest) == 0 {
		if s.err = s.fill(); s.err != nil {
			return 0, s.err
		}
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	s.off += int64(n)
	return n, nil
}

// fill sets rest to the bytes from off to the end of their chunk or of the stream.
func (s *valueStream) fill() error {
	if s.v.large == nil {
		s.rest = s.v.small[s.off:s.end]
		return nil
	}
	if s.buf == nil {
		return fmt.Errorf("value read after its end: %w", ErrStage)
	}
	chunk, err := s.v.large.chunk(s.next, s.at, s.buf)
	if err != nil {
		return err
	}
	start := int64(s.next) * chunkSize
	s.at += int64(s.v.large.stored[s.next])
	s.next++
	s.rest = chunk[s.off-start : min(int64(len(chunk)), s.end-start)]
	return nil
}

// chunk reads, checks and unpacks chunk i, which lies at offset at.
func (v *largeValue) chunk(i int, at int64, s *Scratch) ([]byte, error) {
	r := v.r
	var err error
	if s.stored, err = v.spans.read(r, s.stored, at, int(v.stored[i])); err != nil {
		return nil, r.broken(-1, at, err)
	}
	if err := checkPacked(s.stored, uint32(i)); err != nil {
		return nil, r.corrupt(-1, at, err)
	}
	raw, err := s.unpack(s.stored)
	if err == nil && int64(len(raw)) != min(chunkSize, v.length-int64(i)*chunkSize) {
		err = errUnpacked
	}
	if err != nil {
		return nil, r.corrupt(-1, at, err)
	}
	return raw, nil
}

// Close gives the stream's buffers back.
func (s *valueStream) Close() error {
	if s.buf != nil {
		chunkBuffers.Put(s.buf)
		s.buf, s.rest = nil, nil
	}
	return nil
}
