package bzip2

import "encoding/binary"

// bitReader reads bits from bytes, highest first. Beyond the end it returns zeros, and short is true.
type bitReader struct {
	src  []byte
	bits uint64 // the next bits, from the top
	n    int    // number of them that are from src; negative if more were taken than exist
}

// refill makes at least 56 bits available, or all that are left.
func (r *bitReader) refill() {
	if len(r.src) >= 8 {
		r.bits |= binary.BigEndian.Uint64(r.src) >> r.n
		k := (63 - r.n) >> 3
		r.src = r.src[k:]
		r.n += k << 3
		return
	}
	for r.n <= 56 && len(r.src) > 0 {
		r.bits |= uint64(r.src[0]) << (56 - r.n)
		r.src = r.src[1:]
		r.n += 8
	}
}

// take returns the next k bits, 1 … 24.
func (r *bitReader) take(k int) uint32 {
	if r.n < k {
		if r.n < 0 {
			return 0
		}
		r.refill()
	}
	v := uint32(r.bits >> (64 - k))
	r.bits <<= k
	r.n -= k
	return v
}

// short reports whether more bits were taken than exist.
func (r *bitReader) short() bool { return r.n < 0 }

// align drops what is left of the current byte.
func (r *bitReader) align() {
	r.bits <<= r.n & 7
	r.n &^= 7
}

// empty reports whether all whole bytes have been taken.
func (r *bitReader) empty() bool { return r.n < 8 && len(r.src) == 0 }
