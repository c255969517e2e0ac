package avro

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// window is how much of a block is decompressed at a time, in bytes.
const window = 64 << 10

var errShort = errors.New("unexpected end of data")

// stream decodes Avro's primitive values from a reader, through a window of fixed size. It keeps the first error, after
// which it returns zeros.
type stream struct {
	r        io.Reader
	buf      []byte // the window; buf[pos:end] is not used yet
	pos, end int
	used     int64 // bytes used before buf[0]
	err      error
	eof      bool // r has ended
}

func (s *stream) reset(r io.Reader) {
	if s.buf == nil {
		s.buf = make([]byte, window)
	}
	*s = stream{r: r, buf: s.buf}
}

// consumed returns the number of bytes used.
func (s *stream) consumed() int64 { return s.used + int64(s.pos) }

func (s *stream) fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

// maxEmptyReads is how many times a reader may return neither data nor an error, as in package bufio.
const maxEmptyReads = 100

// more refills the window when it is used up. It returns false at the end and after an error.
func (s *stream) more() bool {
	if s.err != nil || s.eof {
		return false
	}
	s.used += int64(s.pos)
	s.pos, s.end = 0, 0
	for range maxEmptyReads {
		n, err := s.r.Read(s.buf)
		s.end = n
		if err == io.EOF {
			s.eof = true
		} else if err != nil {
			s.fail(err)
		}
		if n > 0 || err != nil {
			return n > 0
		}
	}
	s.fail(io.ErrNoProgress)
	return false
}

// ended reports whether all bytes were used. Reaching the end also makes decompressors verify checksums.
func (s *stream) ended() bool { return s.pos == s.end && !s.more() && s.err == nil }

func (s *stream) byte() byte {
	if s.pos == s.end && !s.more() {
		s.fail(errShort)
		return 0
	}
	s.pos++
	return s.buf[s.pos-1]
}

// long reads an int or a long: zigzag, seven bits a byte, lowest first.
func (s *stream) long() int64 {
	if b := s.buf[s.pos:s.end]; len(b) >= binary.MaxVarintLen64 {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			s.fail(errors.New("a number of more than 64 bits"))
			return 0
		}
		s.pos += n
		return int64(v>>1) ^ -int64(v&1)
	}
	v := uint64(0)
	for shift := 0; shift < 64; shift += 7 {
		b := s.byte()
		if shift == 63 && b > 1 {
			break
		}
		if v |= uint64(b&0x7f) << shift; b < 0x80 {
			return int64(v>>1) ^ -int64(v&1)
		}
	}
	s.fail(errors.New("a number of more than 64 bits"))
	return 0
}

func (s *stream) int() int64 {
	n := s.long()
	if int64(int32(n)) != n {
		s.fail(fmt.Errorf("the int %d has more than 32 bits", n))
	}
	return n
}

// length reads the length of a string or of bytes.
func (s *stream) length() int64 {
	n := s.long()
	if n < 0 {
		s.fail(fmt.Errorf("a string of %d bytes", n))
		return 0
	}
	return n
}

// append appends the next n bytes. It grows dst as they are received.
func (s *stream) append(dst []byte, n int64) []byte {
	for n > 0 && s.err == nil {
		if s.pos == s.end && !s.more() {
			s.fail(errShort)
			break
		}
		b := s.buf[s.pos:s.end]
		b = b[:min(int64(len(b)), n)]
		dst = append(dst, b...)
		s.pos += len(b)
		n -= int64(len(b))
	}
	return dst
}

func (s *stream) discard(n int64) {
	for n > 0 && s.err == nil {
		if s.pos == s.end && !s.more() {
			s.fail(errShort)
			return
		}
		k := min(int64(s.end-s.pos), n)
		s.pos += int(k)
		n -= k
	}
}

// blocks calls item for each element of an array or a map. They are stored in blocks with a count; a negative count is
// followed by the block's length in bytes.
func (s *stream) blocks(item func()) {
	for s.err == nil {
		n := s.long()
		if n == 0 {
			return
		}
		if n < 0 {
			if n == math.MinInt64 {
				s.fail(errors.New("invalid count"))
				return
			}
			n = -n
			s.length()
		}
		for ; n > 0 && s.err == nil; n-- {
			item()
		}
	}
}

func (s *stream) uint32() uint32 {
	var b [4]byte
	s.append(b[:0], 4)
	return binary.LittleEndian.Uint32(b[:])
}

func (s *stream) uint64() uint64 {
	var b [8]byte
	s.append(b[:0], 8)
	return binary.LittleEndian.Uint64(b[:])
}
