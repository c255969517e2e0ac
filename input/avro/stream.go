package avro

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"sequins/internal/lookahead"
)

var errShort = errors.New("unexpected end of data")

// stream decodes Avro's primitive values. It keeps the first error, after which it returns zeros.
type stream struct {
	in  lookahead.Reader
	err error
}

func (s *stream) reset(r io.Reader) {
	s.in.Reset(r, 0)
	s.err = nil
}

// consumed returns the number of bytes used.
func (s *stream) consumed() int64 { return s.in.Offset() }

func (s *stream) fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

// short fails because there are too few bytes.
func (s *stream) short() {
	if err := s.in.Err(); err != io.EOF {
		s.fail(err)
	}
	s.fail(errShort)
}

// ended reports whether all bytes were used. Reaching the end also makes decompressors verify checksums.
func (s *stream) ended() bool {
	if s.in.Fill(1) {
		return false
	}
	if err := s.in.Err(); err != io.EOF {
		s.fail(err)
	}
	return s.err == nil
}

func (s *stream) byte() byte {
	if !s.in.Fill(1) {
		s.short()
		return 0
	}
	b := s.in.Bytes()[0]
	s.in.Skip(1)
	return b
}

// long reads an int or a long: zigzag, seven bits a byte, lowest first.
func (s *stream) long() int64 {
	b := s.in.Bytes()
	if len(b) < binary.MaxVarintLen64 {
		s.in.Fill(binary.MaxVarintLen64) // or less, near the end
		b = s.in.Bytes()
	}
	v, n := binary.Uvarint(b)
	switch {
	case n > 0:
		s.in.Skip(n)
		return int64(v>>1) ^ -int64(v&1)
	case n == 0:
		s.short()
	default:
		s.fail(errors.New("a number of more than 64 bits"))
	}
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
		if !s.in.Fill(1) {
			s.short()
			break
		}
		b := s.in.Bytes()
		b = b[:min(int64(len(b)), n)]
		dst = append(dst, b...)
		s.in.Skip(len(b))
		n -= int64(len(b))
	}
	return dst
}

func (s *stream) discard(n int64) {
	for n > 0 && s.err == nil {
		if !s.in.Fill(1) {
			s.short()
			return
		}
		k := min(int64(s.in.Len()), n)
		s.in.Skip(int(k))
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
