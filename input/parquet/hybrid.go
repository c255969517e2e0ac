package parquet

import (
	"encoding/binary"
	"math"
)

// A hybrid reads the RLE/bit-packing hybrid: levels, indexes of a dictionary, and booleans. It is a sequence of runs, each of
// which repeats one number, or has groups of eight packed ones.
type hybrid struct {
	b     []byte // behind the current run
	width byte   // bits of a number, up to 32

	left   uint64 // numbers of the current run that have not been read
	packed []byte // of the current run
	at     uint64 // index of the next number in packed
	number uint32 // what the current run repeats, if packed is nil
}

// bitPacked returns a hybrid of one run, whose numbers of one bit are b.
func bitPacked(b []byte) hybrid { return hybrid{width: 1, packed: b, left: 8 * uint64(len(b))} }

// read fills out. It returns false if there are not as many numbers, or if they are malformed.
func (h *hybrid) read(out []uint32) bool {
	for len(out) > 0 {
		if h.left == 0 && !h.next() {
			return false
		}
		n := min(uint64(len(out)), h.left)
		if h.packed == nil {
			for i := range out[:n] {
				out[i] = h.number
			}
		} else {
			for i := range out[:n] {
				out[i] = uint32(unpackBits(h.packed, h.width, h.at+uint64(i)))
			}
			h.at += n
		}
		h.left -= n
		out = out[n:]
	}
	return true
}

// next begins the next run, which has a number at least.
func (h *hybrid) next() bool {
	head, n := binary.Uvarint(h.b)
	if n <= 0 || head > math.MaxUint32 {
		return false
	}
	h.b = h.b[n:]
	count, width := head>>1, uint64(h.width)
	if head&1 != 0 && width > 0 {
		size := min(count*width, uint64(len(h.b))) // writers leave out what is behind the last number of a page
		h.packed, h.at, h.left = h.b[:size], 0, min(8*count, 8*size/width)
		h.b = h.b[size:]
		return h.left > 0
	}
	size := (width + 7) / 8
	if size > uint64(len(h.b)) {
		return false
	}
	var number [4]byte
	copy(number[:], h.b[:size])
	h.packed, h.number, h.left = nil, binary.LittleEndian.Uint32(number[:]), count
	if head&1 != 0 { // packed numbers of no bits
		h.left = 8 * count
	}
	h.b = h.b[size:]
	return h.left > 0
}
