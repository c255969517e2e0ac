package blocks

import (
	"encoding/binary"
	"math/bits"
	"unsafe"
)

// A lookup in memory waits for two cache lines, the head of a page and a record. Meanwhile the processor goes on
// with what comes next, the next lookup perhaps: as far as its buffers reach, and not behind a branch that it
// has guessed wrong. So there is little code here, what could be branched on late memory is computed, and
// bounds are checked once. With the index built for the same end it saves a quarter to a third of a hit.

// Bounds of what findRecord knows.
const (
	fastRecords = 64  // in a page: their fingerprints are compared at once
	fastPage    = 200 // bytes at least: what is read of a page's head, whatever is in it
	fastMinKey  = 8   // so that keys are compared by words
	fastMaxKey  = 127 // so that its length is one byte
)

// findRecord looks a key up among the candidates in a page as it lies in the map, not packed, and returns where in it the
// value begins and ends, or that it is absent. It knows the usual case alone, a key of usual length among few
// enough records. In all other cases, damage among them, end is 0 and absent false.
func findRecord(stored, key []byte, mask uint64) (start, end int, absent bool) {
	if len(stored) < fastPage+trailerSize || uint(len(key)-fastMinKey) > fastMaxKey-fastMinKey {
		return 0, 0, false
	}
	p, size, length := unsafe.Pointer(unsafe.SliceData(stored)), len(stored)-trailerSize, len(key)
	n := load16(p, 0)
	if uint(n-1) >= fastRecords { // 0 is a large value
		return 0, 0, false
	}
	damaged := 0
	for ; mask != 0; mask &= mask - 1 {
		i := recordOf(mask)
		ends := unsafe.Add(p, n+2*i)
		from, end := load16(ends, 0)&(-i>>63)+3*n+1, load16(ends, 2)+3*n
		if i == n-1 {
			end = size
		}
		start := from + length
		// -1 where the mark is no record's, and where the key does not fit the record.
		none, short := (n-1-i)>>63, ((end-start)|(size-end))>>63
		wrong := none | short
		at := unsafe.Add(p, from&^wrong-wrong) // in the page, in any case
		if wrong|(int(*(*byte)(unsafe.Add(at, -1)))^length) == 0 && sameKey(at, unsafe.Pointer(unsafe.SliceData(key)), length-8) {
			return start, end, false
		}
		damaged |= short &^ none
	}
	return 0, 0, damaged == 0
}

// likelyRecord returns where in the page the first and the last byte are of the first of the records in mask.
func likelyRecord(stored []byte, mask uint64) (first, last int) {
	p := unsafe.Pointer(unsafe.SliceData(stored))
	n := load16(p, 0)
	if mask == 0 || n > fastRecords {
		return 0, 0
	}
	i, end := recordOf(mask), len(stored)-1
	ends := unsafe.Add(p, n+2*i)
	return min(load16(ends, 0)&(-i>>63)+3*n, end), min(load16(ends, 2)+3*n, end)
}

// candidates returns which of a page's first 64 bytes of fingerprints are that of hash, as bits that recordOf reads; none if
// the page is too short to be looked through so.
func candidates(stored []byte, hash uint64) uint64 {
	if len(stored) < fastPage+trailerSize {
		return 0
	}
	p, pattern := unsafe.Pointer(unsafe.SliceData(stored)), uint64(fingerprint(hash))*lowBits
	return marks(p, 2, pattern)>>7 | marks(p, 10, pattern)>>6 | marks(p, 18, pattern)>>5 | marks(p, 26, pattern)>>4 |
		marks(p, 34, pattern)>>3 | marks(p, 42, pattern)>>2 | marks(p, 50, pattern)>>1 | marks(p, 58, pattern)
}

// recordOf is the record of the lowest bit of mask: bit 8·b+w is that of record 8·w+b.
func recordOf(mask uint64) int {
	bit := bits.TrailingZeros64(mask)
	return bit&7<<3 + bit>>3
}

const lowBits, highBits = 0x0101010101010101, 0x8080808080808080

// marks marks the bytes that are those of pattern by their high bits. A byte above one may be marked too, if it differs by 1.
func marks(p unsafe.Pointer, at int, pattern uint64) uint64 {
	zero := load64(p, at) ^ pattern
	return (zero - lowBits) &^ zero & highBits
}

// sameKey compares last+8 bytes: the first and the last eight, which is all of most keys, and what is between.
func sameKey(p, q unsafe.Pointer, last int) bool {
	return (load64(p, 0)^load64(q, 0))|(load64(p, last)^load64(q, last)) == 0 && (last <= 8 || sameMiddle(p, q, last))
}

func sameMiddle(p, q unsafe.Pointer, last int) bool {
	for i := 8; i < last; i += 8 {
		if load64(p, i) != load64(q, i) {
			return false
		}
	}
	return true
}

// load64 and load16 read little-endian numbers. The caller has checked that they are there.
func load64(p unsafe.Pointer, at int) uint64 {
	return binary.LittleEndian.Uint64((*[8]byte)(unsafe.Add(p, at))[:])
}

func load16(p unsafe.Pointer, at int) int {
	return int(binary.LittleEndian.Uint16((*[2]byte)(unsafe.Add(p, at))[:]))
}
