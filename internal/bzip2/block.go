package bzip2

import (
	"io"

	"sequins/internal/unpack"
)

const (
	bzip2MinTrees = 2
	bzip2MaxTrees = 6
	bzip2Group    = 50 // symbols that are coded with the same tree
	// bzip2MaxRun bounds the length of a run while its digits are being read.
	bzip2MaxRun = 2 << 20

	// The first symbols are the digits of the length of a run of the byte in front; the last ends the block.
	bzip2RunA = 0
	bzip2RunB = 1
)

// block is a block, decoded up to the inverse of the Burrows-Wheeler transform. An entry of tt has a byte of the
// output in its lowest 8 bits, and the number of the entry that follows above them.
type block struct {
	tt     []uint32
	random bool // the output is masked, see mask
	front  mtf  // the bytes in use, the last used in front
	used   int  // how many they are
	count  [256]uint32

	trees     [bzip2MaxTrees]huffman
	coded     int            // how many trees the block has
	selectors [1 << 15]uint8 // tree of each group of symbols
	groups    int
}

// read decodes a block of not more than size bytes, of which magic and checksum have been read, and returns the number
// of the first entry.
func (b *block) read(in *bitReader, size int) (first uint32, err error) {
	b.random = in.take(1) != 0
	origin := in.take(24)
	if !b.readSymbols(in) || !b.readSelectors(in) || !b.readTrees(in) {
		return 0, b.bad(in, errTables)
	}
	if !b.readData(in, size) {
		return 0, b.bad(in, errData)
	}
	if origin >= uint32(len(b.tt)) {
		return 0, errData
	}
	b.untransform()
	return b.tt[origin] >> 8, nil
}

// bad returns err, or io.ErrUnexpectedEOF if the input has ended.
func (b *block) bad(in *bitReader, err error) error {
	if in.short() {
		return io.ErrUnexpectedEOF
	}
	return err
}

// readSymbols reads which bytes are in use: 16 bits for ranges of 16 bytes, and 16 for each that is set.
func (b *block) readSymbols(in *bitReader) bool {
	b.used = 0
	ranges := in.take(16)
	for i := range 16 {
		if ranges>>(15-i)&1 == 0 {
			continue
		}
		bytes := in.take(16)
		for j := range 16 {
			if bytes>>(15-j)&1 != 0 {
				b.front[b.used] = byte(i<<4 | j)
				b.used++
			}
		}
	}
	return b.used > 0 && !in.short()
}

// readSelectors reads the number of trees, and which of them is for which group: its place in a list where the last
// used is in front, in unary.
func (b *block) readSelectors(in *bitReader) bool {
	b.coded = int(in.take(3))
	b.groups = int(in.take(15))
	if b.coded < bzip2MinTrees || b.coded > bzip2MaxTrees || b.groups == 0 {
		return false
	}
	front := mtf{0, 1, 2, 3, 4, 5}
	for i := range b.groups {
		place := 0
		for in.take(1) != 0 {
			if place++; place >= b.coded {
				return false
			}
		}
		b.selectors[i] = front.take(place)
	}
	return !in.short()
}

// readTrees reads the lengths of codes: that of the first symbol, then differences in unary.
func (b *block) readTrees(in *bitReader) bool {
	var lengths [258]uint8
	for i := range b.coded {
		n := in.take(5)
		for j := range lengths[:b.used+2] {
			for {
				if n < 1 || n > huffmanMax {
					return false
				}
				if in.take(1) == 0 {
					break
				}
				n += 1 - 2*in.take(1)
			}
			lengths[j] = uint8(n)
		}
		if in.short() || !b.trees[i].build(lengths[:b.used+2]) {
			return false
		}
	}
	return true
}

// readData decodes the symbols into the low bytes of tt, and counts them.
func (b *block) readData(in *bitReader, size int) bool {
	clear(b.count[:])
	b.tt = b.tt[:0]
	end := uint32(b.used + 1)
	run, digit := 0, 1
	for _, s := range b.selectors[:b.groups] {
		tree := &b.trees[s]
		for range bzip2Group {
			symbol := tree.decode(in)
			if symbol <= bzip2RunB {
				run += digit << symbol
				if digit <<= 1; run > bzip2MaxRun {
					return false
				}
				continue
			}
			if run > 0 {
				if run > size-len(b.tt) {
					return false
				}
				b.repeat(b.front[0], run)
				run, digit = 0, 1
			}
			if symbol >= end {
				return symbol == end && !in.short()
			}
			if len(b.tt) >= size || in.short() {
				return false
			}
			c := b.front.take(int(symbol - 1))
			b.count[c]++
			b.tt = append(b.tt, uint32(c))
		}
	}
	return false // no group is left before the end-of-block symbol
}

func (b *block) repeat(c byte, n int) {
	b.count[c] += uint32(n)
	for range n {
		b.tt = append(b.tt, uint32(c))
	}
}

// untransform links the entries: the i-th entry of those with the byte c follows the one at place i among all that
// are sorted before.
func (b *block) untransform() {
	sum := uint32(0)
	for i, n := range b.count {
		b.count[i] = sum
		sum += n
	}
	for i, entry := range b.tt {
		c := byte(entry)
		b.tt[b.count[c]] |= uint32(i) << 8
		b.count[c]++
	}
}

// output appends the bytes of the block, or stops behind end. It undoes the first stage of bzip2: a count of further repetitions follows
// four equal bytes.
func (b *block) output(dst []byte, next uint32, end int) []byte {
	var masked mask
	last, same := byte(0), 0 // how often last has come in a row, up to 4
	dst = unpack.Grow(dst, len(b.tt))
	for range b.tt {
		entry := b.tt[next]
		next = entry >> 8
		c := byte(entry)
		if b.random {
			c = masked.flip(c)
		}
		switch {
		case same == 4:
			same = 0
			dst = unpack.Grow(dst, int(c))
			for range c {
				dst = append(dst, last)
			}
			if len(dst) > end {
				return dst
			}
			continue
		case c == last:
			same++
		default:
			last, same = c, 1
		}
		dst = append(dst, c)
	}
	return dst
}

// mtf is a list of bytes in which the one that is used moves to the front.
type mtf [256]byte

func (m *mtf) take(i int) byte {
	c := m[i]
	copy(m[1:i+1], m[:i])
	m[0] = c
	return c
}

// huffmanMax is the number of bits of the longest code.
const huffmanMax = 20

// huffman decodes the symbols of one tree.
type huffman struct {
	// Codes of a length are below limit; a code less the base is a place in symbols.
	limit   [huffmanMax + 1]uint32
	base    [huffmanMax + 1]uint32
	symbols [258]uint16
}

// build builds the canonical codes of the given lengths, 1 … huffmanMax. It returns false if there are too many.
func (h *huffman) build(lengths []uint8) bool {
	var count [huffmanMax + 1]uint32
	for _, n := range lengths {
		count[n]++
	}
	var place [huffmanMax + 1]uint32 // of the next symbol of a length
	code, seen := uint32(0), uint32(0)
	for n := 1; n <= huffmanMax; n++ {
		h.base[n] = code - seen
		place[n] = seen
		code += count[n]
		seen += count[n]
		if code > 1<<n {
			return false
		}
		h.limit[n] = code
		code <<= 1
	}
	for symbol, n := range lengths {
		h.symbols[place[n]] = uint16(symbol)
		place[n]++
	}
	return true
}

// huffmanNone is not a symbol: it is larger than any.
const huffmanNone = 1 << 16

// decode returns the next symbol, or huffmanNone for an invalid code.
func (h *huffman) decode(in *bitReader) uint32 {
	code := uint32(0)
	for n := 1; n <= huffmanMax; n++ {
		code = code<<1 | in.take(1)
		if code < h.limit[n] {
			return uint32(h.symbols[code-h.base[n]])
		}
	}
	return huffmanNone
}
