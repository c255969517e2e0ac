package avro

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

var errShort = errors.New("unexpected end of data")

// stream decodes Avro's primitive values from b. It keeps the first error, after which it returns zeros.
type stream struct {
	b   []byte
	pos int // in b
	err error
}

func (s *stream) fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

func (s *stream) take(n int64) []byte {
	if n > int64(len(s.b)-s.pos) {
		s.fail(errShort)
	}
	if s.err != nil {
		return nil
	}
	b := s.b[s.pos : s.pos+int(n)]
	s.pos += int(n)
	return b
}

// long reads an int or a long: zigzag, seven bits a byte, lowest first.
func (s *stream) long() int64 {
	v, n := binary.Uvarint(s.b[s.pos:])
	switch {
	case s.err != nil:
		return 0
	case n == 0:
		s.fail(errShort)
		return 0
	case n < 0:
		s.fail(errors.New("a number of more than 64 bits"))
		return 0
	}
	s.pos += n
	return int64(v>>1) ^ -int64(v&1)
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
