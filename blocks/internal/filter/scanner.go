package filter

import (
	"hash/crc32"

	"sequins/blocks/internal/decode"
)

// Scanner makes the filter of a block from its section, which is read in pieces.
type Scanner struct {
	kept   []byte // the end of the section, from the tables on, or all of it
	from   int64  // where that begins
	tables int    // their length
	at     int64  // of the next piece
	length int64
	sums   []uint32
	crc    uint32
}

// NewScanner begins with a section of length bytes. tail are the last bytes of it, four if there are as many. whole keeps all of the
// section on the heap; otherwise its checksums are kept.
func NewScanner(tail []byte, length int64, whole bool) (Scanner, error) {
	n, err := tablesSize(tail, length)
	if err != nil {
		return Scanner{}, err
	}
	if whole {
		return Scanner{kept: make([]byte, length), tables: n, length: length}, nil
	}
	return Scanner{
		kept: make([]byte, n), from: length - int64(n), tables: n, length: length,
		sums: make([]uint32, 0, (length+ChunkSize-1)/ChunkSize),
	}, nil
}

// Add takes the next piece of the section. All but the last must be multiples of ChunkSize long.
func (s *Scanner) Add(piece []byte) {
	for i := 0; i < len(piece); i += ChunkSize {
		s.crc = crc32.Update(s.crc, castagnoli, piece[i:min(i+ChunkSize, len(piece))])
		if s.sums != nil {
			s.sums = append(s.sums, s.crc)
		}
	}
	if end := s.at + int64(len(piece)); end > s.from {
		copy(s.kept[max(s.at-s.from, 0):], piece[max(s.from-s.at, 0):])
	}
	s.at += int64(len(piece))
}

// CRC is the CRC-32C of the pieces.
func (s *Scanner) CRC() uint32 { return s.crc }

// Filter returns the filter when all pieces have been added. Unless all of the section is kept, it has no map yet.
func (s *Scanner) Filter() (*Filter, error) {
	if s.at != s.length {
		return nil, decode.ErrMalformed
	}
	f, err := newFilter(s.kept[len(s.kept)-s.tables:], s.length)
	if err != nil {
		return nil, err
	}
	if f.sums = s.sums; s.sums == nil {
		f.data = s.kept
	}
	return f, nil
}
