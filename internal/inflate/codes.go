package inflate

import (
	"io"
	"math/bits"
)

// A table of codes has an entry for each value that the next bits can have:
//
//	bits 0–3     size of the code, in bits
//	bit 4        a literal; the value is the byte
//	bit 5        a length or distance: the value and what the extra bits behind the code say, added up
//	bit 6        the end of the block
//	bit 7        the code is longer: for its further bits there is another table, the place of which is the value
//	bits 8–11    number of extra bits
//	bits 16–31   value
//
// An entry without any of bits 4 to 7 is no code.
const (
	codeSize    = 15
	codeLiteral = 1 << 4
	codeBase    = 1 << 5
	codeEnd     = 1 << 6
	codeLink    = 1 << 7
	codeExtra   = 8  // shift
	codeValue   = 16 // shift

	codeMax      = 15 // bits of the longest code
	lengthBits   = 10 // that are looked at first
	distanceBits = 8

	endOfBlock   = 256 // symbol
	maxLengths   = 286 // symbols for literals and lengths, without two that are never used
	maxDistances = 30  // likewise
)

// codeTables are the codes of a block. A table for further bits has at least two symbols, so the number of these
// tables is at most half that of the symbols.
type codeTables struct {
	lengths   [1<<lengthBits + (maxLengths+2)/2<<(codeMax-lengthBits)]uint32
	distances [1<<distanceBits + (maxDistances+2)/2<<(codeMax-distanceBits)]uint32
}

// lengthSymbols and distanceSymbols are the entries of symbols, but for the size of their codes.
var (
	lengthSymbols = func() (s [maxLengths + 2]uint32) {
		for i := range endOfBlock {
			s[i] = codeLiteral | uint32(i)<<codeValue
		}
		s[endOfBlock] = codeEnd
		baseSymbols(s[endOfBlock+1:maxLengths-1], 3, 4)
		s[maxLengths-1] = codeBase | longestMatch<<codeValue
		return s
	}()
	distanceSymbols = func() (s [maxDistances + 2]uint32) {
		baseSymbols(s[:maxDistances], 1, 2)
		return s
	}()
)

// baseSymbols makes symbols for the values from first on. The first two groups have no extra bits; each group after
// them has one extra bit more than the one before.
func baseSymbols(s []uint32, first, group int) {
	for i := range s {
		extra := max(0, i/group-1)
		s[i] = codeBase | uint32(extra)<<codeExtra | uint32(first)<<codeValue
		first += 1 << extra
	}
}

// fixedCodes are those of blocks that bring none.
var fixedCodes = func() *codeTables {
	var sizes [maxLengths + 2 + maxDistances + 2]uint8
	for i := range sizes {
		switch {
		case i < 144:
			sizes[i] = 8
		case i < 256:
			sizes[i] = 9
		case i < 280:
			sizes[i] = 7
		case i < 288:
			sizes[i] = 8
		default:
			sizes[i] = 5
		}
	}
	c := new(codeTables)
	buildTable(c.lengths[:], lengthBits, sizes[:288], lengthSymbols[:])
	buildTable(c.distances[:], distanceBits, sizes[288:], distanceSymbols[:])
	return c
}()

// buildTable makes the table of the canonical codes of the given sizes, of which the first bits are looked at at once.
// It is false if the codes are too many, or too few: all are to be used, but that a single one may have a size of 1.
func buildTable(table []uint32, first int, sizes []uint8, symbols []uint32) bool {
	sorted, count, ok := sortCodes(sizes)
	if !ok {
		return false
	}
	code, i := 0, int(count[0])
	table[0] = 0
	for size := 1; size <= first; size++ {
		copy(table[1<<(size-1):1<<size], table[:1<<(size-1)]) // what is shorter, in front of one bit more
		code <<= 1
		for range count[size] {
			table[reverse(code, size)] = symbols[sorted[i]] | uint32(size)
			code++
			i++
		}
	}
	free := 1 << first // where the next table of further bits goes
	for size := first + 1; size <= codeMax; size++ {
		code <<= 1
		for range count[size] {
			bits := reverse(code, size)
			link := &table[bits&(1<<first-1)]
			if *link == 0 {
				*link = codeLink | uint32(free)<<codeValue
				free += 1 << (codeMax - first)
			}
			further := table[*link>>codeValue:][:1<<(codeMax-first)]
			for at := bits >> first; at < len(further); at += 1 << (size - first) { // all entries whose lowest bits are the code
				further[at] = symbols[sorted[i]] | uint32(size)
			}
			code++
			i++
		}
	}
	return true
}

// sortCodes returns the symbols in the order of the sizes of their codes, and how many there are of each size.
func sortCodes(sizes []uint8) (sorted [maxLengths + 2]uint16, count [codeMax + 1]uint16, ok bool) {
	for _, size := range sizes {
		count[size]++
	}
	var place [codeMax + 1]uint16
	used, longest := 0, 0 // used of 1<<codeMax codes of the largest size
	for size := 1; size <= codeMax; size++ {
		place[size] = place[size-1] + count[size-1]
		used += int(count[size]) << (codeMax - size)
		if count[size] > 0 {
			longest = size
		}
	}
	if used > 1<<codeMax || used < 1<<codeMax && longest > 1 {
		return sorted, count, false
	}
	for i, size := range sizes {
		sorted[place[size]] = uint16(i)
		place[size]++
	}
	return sorted, count, true
}

// reverse turns the bits of a code around: codes begin with their highest bit, everything else with its lowest.
func reverse(code, size int) int {
	return int(bits.Reverse16(uint16(code)) >> (16 - size))
}

// sizeOrder is the order of symbols in which the sizes of their codes stand in front of a block's codes.
var sizeOrder = [19]uint8{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}

// readCodes reads the codes that stand in front of the block's data.
func (z *Decoder) readCodes() error {
	lengths, distances, sizes := int(z.take(5))+257, int(z.take(5))+1, int(z.take(4))+4
	var order [19]uint8
	for _, symbol := range sizeOrder[:sizes] {
		order[symbol] = uint8(z.take(3))
	}
	if z.n < 0 {
		return io.ErrUnexpectedEOF
	}
	if lengths > maxLengths || distances > maxDistances || !z.readSizes(order[:], lengths+distances) {
		return z.bad(z.n, errCodes)
	}
	all := z.sizes[:lengths+distances]
	if all[endOfBlock] == 0 ||
		!buildTable(z.dynamic.lengths[:], lengthBits, all[:lengths], lengthSymbols[:]) ||
		!buildTable(z.dynamic.distances[:], distanceBits, all[lengths:], distanceSymbols[:]) {
		return errCodes
	}
	return nil
}

// readSizes reads the sizes of n codes, which are themselves coded.
func (z *Decoder) readSizes(order []uint8, n int) bool {
	const orderBits = 7
	var table [1 << orderBits]uint32
	var symbols [19]uint32
	for i := range symbols {
		symbols[i] = codeLiteral | uint32(i)<<codeValue
	}
	if !buildTable(table[:], orderBits, order, symbols[:]) {
		return false
	}
	for i := 0; i < n; {
		if z.n < orderBits {
			z.refill()
		}
		entry := table[z.bits&(1<<orderBits-1)]
		z.bits >>= entry & codeSize
		z.n -= int(entry & codeSize)
		if entry == 0 || z.n < 0 {
			return false
		}
		size, times := uint8(entry>>codeValue), 1
		switch {
		case size == 16 && i == 0:
			return false
		case size == 16: // the one before again
			size, times = z.sizes[i-1], 3+int(z.take(2))
		case size == 17:
			size, times = 0, 3+int(z.take(3))
		case size == 18:
			size, times = 0, 11+int(z.take(7))
		}
		if times > n-i {
			return false
		}
		for range times {
			z.sizes[i] = size
			i++
		}
	}
	return z.n >= 0
}
