package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// The three delta encodings are decoded here and handed on as PLAIN: what a page claims is compared with its
// length and with a limit first.

// maxDeltaValues is how many values a page with a delta encoding may have. A run of equal differences takes no
// bits, so that their number is not bounded by the size of the page.
const maxDeltaValues = 16 << 20

var errDelta = errors.New("malformed deltas")

// deltas decodes DELTA_BINARY_PACKED into out, which is reused, and returns what follows. There can be at most
// the given number of values. Sums wrap around.
func deltas(b []byte, out []int64, most int64) (values []int64, rest []byte, err error) {
	r := thriftReader{b: b} // its numbers are of the same form
	block, minis, count, last := r.uvarint(), r.uvarint(), r.uvarint(), r.zigzag()
	switch {
	case r.err != nil:
		return nil, nil, errDelta
	case minis == 0 || minis > block || block > math.MaxInt32 || block%minis != 0 || block/minis%8 != 0:
		return nil, nil, fmt.Errorf("%w: blocks of %d values in %d parts", errDelta, block, minis)
	case count > uint64(min(most, maxDeltaValues)):
		return nil, nil, fmt.Errorf("%w: %d values of at most %d", errDelta, count, min(most, maxDeltaValues))
	}
	out = out[:0]
	if count == 0 {
		return out, r.b, nil
	}
	if uint64(cap(out)) < count {
		out = make([]int64, 0, count)
	}
	out = append(out, last)
	for uint64(len(out)) < count && r.err == nil {
		least := r.zigzag()
		widths := r.next(minis)
		for i := 0; i < len(widths) && uint64(len(out)) < count; i++ {
			n := min(block/minis, count-uint64(len(out)))
			packed := r.packed(block/minis, n, widths[i])
			if r.err != nil {
				break
			}
			for j := range n {
				last += least + int64(unpackBits(packed, widths[i], j))
				out = append(out, last)
			}
		}
	}
	if r.err != nil {
		return nil, nil, errDelta
	}
	return out, r.b, nil
}

// packed takes the bytes of a part of a block: of all its values, or of the n that are needed if the page ends
// with it.
func (r *thriftReader) packed(all, n uint64, width byte) []byte {
	if width > 64 {
		r.fail(errDelta)
	}
	return r.next(max((n*uint64(width)+7)/8, min(all*uint64(width)/8, uint64(len(r.b)))))
}

func unpackBits(b []byte, width byte, i uint64) uint64 {
	if width == 0 {
		return 0
	}
	at := i * uint64(width)
	shift := at % 8
	b = b[at/8:]
	if len(b) < 9 {
		var whole [9]byte
		copy(whole[:], b)
		b = whole[:]
	}
	v := binary.LittleEndian.Uint64(b) >> shift
	if shift > 0 {
		v |= uint64(b[8]) << (64 - shift)
	}
	return v << (64 - width) >> (64 - width)
}

// numbers decodes DELTA_BINARY_PACKED into one of two slices that are kept.
func (s *shared) numbers(i int, b []byte, most int64) (values []int64, rest []byte, err error) {
	before := cap(s.deltas[i])
	if values, rest, err = deltas(b, s.deltas[i], most); err != nil {
		return nil, nil, err
	}
	s.deltas[i] = values
	return values, rest, s.hold(8 * int64(cap(values)-before))
}

// plainIntegers decodes DELTA_BINARY_PACKED integers of size bytes and appends them to dst.
func (p *pager) plainIntegers(dst, b []byte, most int64, size int) ([]byte, error) {
	values, _, err := p.shared.numbers(0, b, most)
	if err != nil {
		return nil, err
	}
	if dst, err = p.grow(dst, int64(len(values)*size)); err != nil {
		return nil, err
	}
	for _, v := range values {
		if size == 4 {
			dst = binary.LittleEndian.AppendUint32(dst, uint32(v))
		} else {
			dst = binary.LittleEndian.AppendUint64(dst, uint64(v))
		}
	}
	return dst, nil
}

// plainBytes decodes DELTA_LENGTH_BYTE_ARRAY or, if there are prefixes, DELTA_BYTE_ARRAY, and appends the values to
// dst: with their lengths or, if size is not 0, each with size bytes.
func (p *pager) plainBytes(dst, b []byte, most, size int64, prefixes bool) (_ []byte, err error) {
	var shared []int64
	if prefixes {
		if shared, b, err = p.shared.numbers(1, b, most); err != nil {
			return nil, err
		}
	}
	own, b, err := p.shared.numbers(0, b, most)
	if err != nil {
		return nil, err
	}
	if prefixes && len(shared) != len(own) {
		return nil, fmt.Errorf("%w: %d prefixes of %d values", errDelta, len(shared), len(own))
	}
	total, err := plainSize(shared, own, int64(len(b)), size)
	if err != nil {
		return nil, err
	}
	if dst, err = p.grow(dst, total); err != nil {
		return nil, err
	}
	var last []byte
	for i, n := range own {
		var prefix int64
		if prefixes {
			prefix = shared[i]
		}
		if size == 0 {
			dst = binary.LittleEndian.AppendUint32(dst, uint32(prefix+n))
		}
		start := len(dst)
		dst = append(append(dst, last[:prefix]...), b[:n]...)
		last, b = dst[start:], b[n:]
	}
	return dst, nil
}

// plainSize checks the lengths of values, which have their own bytes of all those that are left, and returns the
// size of all of them as PLAIN.
func plainSize(shared, own []int64, left, size int64) (total int64, err error) {
	var last int64
	for i, n := range own {
		var prefix int64
		if shared != nil {
			prefix = shared[i]
		}
		if n < 0 || n > left || prefix < 0 || prefix > last {
			return 0, fmt.Errorf("%w: a value of %d bytes after %d of %d others, with %d left", errDelta, n, prefix, last, left)
		}
		left -= n
		last = prefix + n
		total += last
		switch {
		case size == 0:
			total += 4
		case size != last:
			return 0, fmt.Errorf("%w: a value of %d bytes in a column of %d", errDelta, last, size)
		}
		if total > maxPage {
			return 0, errLarge
		}
	}
	return total, nil
}
