package bzip2

// bitReader reads bits from bytes, highest first. Beyond the end it returns zeros, and short is true.
type bitReader struct {
	src  []byte
	bits uint64 // the last ones read; the lowest n of them are next
	n    int    // negative if more were taken than exist
}

// take returns the next k bits, up to 24.
func (r *bitReader) take(k int) uint32 {
	for ; 0 <= r.n && r.n < k && len(r.src) > 0; r.n += 8 {
		r.bits = r.bits<<8 | uint64(r.src[0])
		r.src = r.src[1:]
	}
	if r.n < k {
		r.n = -1
		return 0
	}
	r.n -= k
	return uint32(r.bits>>r.n) & (1<<k - 1)
}

// short reports whether more bits were taken than exist.
func (r *bitReader) short() bool { return r.n < 0 }

// empty reports whether all whole bytes have been taken.
func (r *bitReader) empty() bool { return r.n < 8 && len(r.src) == 0 }
