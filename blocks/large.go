package blocks

import (
	"fmt"
	"hash/crc32"
	"io"
	"sync"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/sys/unix"

	"sequins/blocks/internal/decode"
)

// Value is where a lookup found its bytes: in memory, or in the chunks of a large value.
type Value struct {
	small []byte
	large *largeValue
}

// largeValue is a value of more than LargeValue bytes: chunks that lie one behind the other, directly before their page.
type largeValue struct {
	r      *Reader
	length int64
	hash   uint64
	chunks []chunk
	spans  spanReader
}

// chunk is a part of a large value: of chunkSize bytes, and the last one of up to twice as many.
type chunk struct {
	at    int64 // offset in the file
	n     int   // length in the file
	raw   int   // and unpacked
	codec Compression
	crc   uint32 // of what lies in the file
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

// parseLarge decodes page i, of a large value. The key lies in payload.
func (r *Reader) parseLarge(i int, payload []byte) (key []byte, v *largeValue, err error) {
	d := decode.New(payload)
	d.U16()
	key = d.Bytes(int(d.U32()))
	v = &largeValue{r: r, length: int64(d.U64()), hash: d.U64()}
	if d.Err() != nil || v.length <= LargeValue || v.length > MaxValue || int64(d.Len()) != 8*(v.length/chunkSize) {
		return nil, nil, errPage
	}
	at, left := int64(0), v.length
	if i > 0 {
		before := r.index.Location(i - 1)
		at = before.Offset() + int64(before.Length())
	}
	v.chunks = make([]chunk, v.length/chunkSize)
	for k := range v.chunks {
		n := d.U32()
		c := chunk{at: at, n: int(n & 0xffffff), codec: Compression(n >> 24), crc: d.U32(), raw: chunkSize}
		if k == len(v.chunks)-1 {
			c.raw = int(left)
		}
		if c.n > c.raw || (c.codec == None) != (c.n == c.raw) {
			return nil, nil, errPage
		}
		v.chunks[k] = c
		at, left = at+int64(c.n), left-int64(c.raw)
	}
	if at > r.index.Location(i).Offset() {
		return nil, nil, errPage
	}
	return key, v, nil
}

// chunkOf returns the number of the chunk that has the byte at off of the value.
func (v *largeValue) chunkOf(off int64) int { return min(int(off/chunkSize), len(v.chunks)-1) }

// Section streams n bytes of the value from off on. Every chunk is verified before a byte of it
// is returned; damage is ErrCorrupt. The stream must be closed, before its Reader is.
func (v Value) Section(off, n int64) io.ReadCloser {
	s := &valueStream{v: v, off: off, end: min(off+n, v.Len())}
	if v.large != nil {
		s.buf = chunkBuffers.Get().(*Scratch)
	}
	return s
}

var chunkBuffers = sync.Pool{New: func() any { return new(Scratch) }}

// valueStream reads a value from off to end.
type valueStream struct {
	v        Value
	off, end int64
	rest     []byte // of the chunk that has been unpacked
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
	i := s.v.large.chunkOf(s.off)
	raw, err := s.v.large.chunk(i, s.buf)
	if err != nil {
		return err
	}
	start := int64(i) * chunkSize
	s.rest = raw[s.off-start : min(int64(len(raw)), s.end-start)]
	return nil
}

// chunk reads, checks and unpacks chunk i. One that is not packed may be sent from the file from then on, see [Value.SendTo].
func (v *largeValue) chunk(i int, s *Scratch) (raw []byte, err error) {
	r, c := v.r, v.chunks[i]
	if s.stored, err = v.spans.read(r, s.stored, c.at, c.n); err != nil {
		return nil, r.broken(-1, c.at, err)
	}
	if crc32.Checksum(s.stored, castagnoli) != c.crc {
		return nil, r.corrupt(-1, c.at, errChecksum)
	}
	if c.codec == None {
		if !v.spans.scrub {
			r.trusted.set(r.valueBit(c.at))
		}
		return s.stored, nil
	}
	s.raw = grow(s.raw[:0], c.raw)[:c.raw]
	if raw, err = decompress(s.raw, s.stored, c.codec); err != nil {
		return nil, r.corrupt(-1, c.at, err)
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

// maxSend is how many bytes SendTo sends at most: so much has been found in memory at the same time.
const maxSend = 2 << 20

// Sendable reports whether SendTo may send the byte at off.
func (v Value) Sendable(off int64) bool { return v.large != nil && v.large.sendable(off) > off }

// SendTo sends bytes of the value from off on to a socket, out of the page cache, without copying them. It sends only chunks
// that are not packed and were found whole since they were last known to be out of memory, as a lookup reads only such pages
// through the map. It does not wait for the socket: if that has no room, it is not done. If it is done with 0 bytes, Section
// must read the byte at off, and finds out what is wrong with it.
func (v Value) SendTo(socket int, off int64) (n int, done bool) {
	if v.large == nil {
		return 0, true
	}
	r, first, end := v.large.r, v.large.chunks[0].at, v.large.sendable(off)
	if end <= off || !r.beginRead(nil) { // or too much waits for the disk
		return 0, true
	}
	n, err := r.file.SendTo(socket, first+off, int(end-off))
	<-reading
	<-r.reads
	if done = n > 0 || err != unix.EAGAIN; done && n == 0 {
		r.trusted.clear(r.valueBit(v.large.chunks[v.large.chunkOf(off)].at))
	}
	return n, done
}

// sendable returns the end of what may be sent from off on; at most off if that is nothing.
func (v *largeValue) sendable(off int64) (end int64) {
	if last := v.chunks[len(v.chunks)-1]; last.at+int64(last.n) != v.chunks[0].at+v.length {
		return 0 // packed
	}
	for i := v.chunkOf(off); i < len(v.chunks) && end < off+maxSend && v.r.trusted.has(v.r.valueBit(v.chunks[i].at)); i++ {
		end = int64(i)*chunkSize + int64(v.chunks[i].raw)
	}
	return end
}
