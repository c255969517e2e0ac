package filter

import (
	"hash/crc32"

	"sequins/blocks/internal/decode"
)

// Scanner makes the filter of a block whose data is not kept on the heap, from its section read in pieces.
type Scanner struct {
	tables []byte // the end of the section
	from   int64  // where they begin
	at     int64  // of the next piece
	length int64
	sums   []uint32
	crc    uint32
}

// NewScanner begins with a section of length bytes. tail are the last bytes of it, four if there are as many.
func NewScanner(tail []byte, length int64) (Scanner, error) {
	n, err := tablesSize(tail, length)
	if err != nil {
		return Scanner{}, err
	}
	return Scanner{
		tables: make([]byte, n), from: length - int64(n), length: length,
		sums: make([]uint32, 0, (length+ChunkSize-1)/ChunkSize),
	}, nil
}

// Add takes the next piece of the section. All but the last must be multiples of ChunkSize long.
func (s *Scanner) Add(piece []byte) {
	for i := 0; i < len(piece); i += ChunkSize {
		s.crc = crc32.Update(s.crc, castagnoli, piece[i:min(i+ChunkSize, len(piece))])
		s.sums = append(s.sums, s.crc)
	}
	if end := s.at + int64(len(piece)); end > s.from {
		copy(s.tables[max(s.at-s.from, 0):], piece[max(s.from-s.at, 0):])
	}
	s.at += int64(len(piece))
}

// CRC is the CRC-32C of the pieces.
func (s *Scanner) CRC() uint32 { return s.crc }

// Filter returns the filter when all pieces have been added. It has no map yet.
func (s *Scanner) Filter() (*Filter, error) {
	if s.at != s.length {
		return nil, decode.ErrMalformed
	}
	f, err := newFilter(s.tables, s.length)
	if err == nil {
		f.sums = s.sums
	}
	return f, err
}
