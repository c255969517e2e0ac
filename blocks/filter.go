package blocks

import (
	"encoding/binary"
	"math/bits"
)

// The filter is a set of short hashes in the manner of Elias and Fano: about 10.3 bits a key, and 1
// absent key in 256 passes it. Others of this quality take up to a tenth less and several times as
// long to build.
//
// The upper 40 bits of a key's XXH64, as a fraction of 1, times the number of buckets are the bucket
// that the key is in and, behind the point, an eight-bit remainder. There are as many buckets as
// keys. 64 buckets are a filterBlock:
//
//	the remainders of its n keys, bucket by bucket, from back to front: n bytes
//	a bitmap of n+65 bits: for every bucket a 0 and then a 1 for each of its keys; a 0 at the end
//
// so that one bucket is found by counting zeros, and its remainders by the ones before it.
const (
	filterHash     = ^uint64(1<<24 - 1) // the bits of a hash that count
	bucketBits     = 6                  // 64 buckets a block
	blockBuckets   = 1 << bucketBits
	superBits      = 9 // 512 blocks begin within 64 KiB, so that two bytes say where
	superBlocks    = 1 << superBits
	maxBlockKeys   = 127 // so that a bitmap has no more than three words
	bitmapSize     = 3 * 8
	filterFront    = 64 // zeros before the first block and behind the last: contains reads ahead
	filterBack     = 8
	passesAll      = ^uint64(0) // the base of superblocks in which this is not so
	maxFilterBlock = 1 << 26    // more than there are keys for
)

// filter answers for absent keys. Its bytes stay where the section lies, in the map.
type filter struct {
	data    []byte   // the whole section
	starts  []byte   // two bytes for each block: where its bitmap begins, behind the base
	bases   []uint64 // of each superblock
	buckets uint64
	nothing byte // 0, which the compiler does not know
}

// parseFilter checks that the lengths agree. The offsets are checked whenever they are used: what is
// mapped may be read from the disk anew at any time.
func parseFilter(b []byte) (*filter, error) {
	if len(b) < 4 {
		return nil, errSection
	}
	blocks := int(binary.LittleEndian.Uint32(b[len(b)-4:]))
	supers := (blocks + superBlocks - 1) / superBlocks
	tables := 2*blocks + 8*supers + 4
	if blocks > maxFilterBlock || blocks > 0 && len(b) < tables+filterFront+filterBack || blocks == 0 && len(b) != 4 {
		return nil, errSection
	}
	f := &filter{data: b, buckets: uint64(blocks) << bucketBits, bases: make([]uint64, supers)}
	d := decoder{b: b[len(b)-tables:]}
	f.starts = d.bytes(2 * blocks)
	for i := range f.bases {
		f.bases[i] = d.u64()
		if f.bases[i] != passesAll && f.bases[i] > uint64(len(b)-tables) {
			return nil, errSection
		}
	}
	return f, d.err
}

func (f *filter) empty() bool { return f.buckets == 0 }

// contains is false only for keys that are not in the block.
func (f *filter) contains(hash uint64) bool {
	bucket, fraction := bits.Mul64(hash&filterHash, f.buckets)
	block := bucket >> bucketBits
	if 2*block+2 > uint64(len(f.starts)) {
		return false // there are none
	}
	base := f.bases[block>>superBits]
	if base == passesAll {
		return true
	}
	at := base + uint64(binary.LittleEndian.Uint16(f.starts[2*block:]))
	return f.bucketContains(at, int(bucket%blockBuckets), byte(fraction>>56))
}

// bucketContains looks for a remainder in a bucket of the block whose bitmap begins at at. What
// cannot be is true: then the page decides. So it does for a bucket of more than eight keys.
//
// In which word of the bitmap the bucket is and how many keys it has is as good as random. There
// are no branches on that: they would be mispredicted, and late, when the memory has answered.
func (f *filter) bucketContains(at uint64, bucket int, remainder byte) bool {
	if at+bitmapSize > uint64(len(f.data)) || at < filterFront {
		return true
	}
	// A bucket's remainders lie about here, mostly in another cache line than the bitmap: it is
	// fetched now, and not only when the bitmap has come.
	early := f.data[at-uint64(bucket)] & f.nothing
	bitmap := f.data[at : at+bitmapSize]
	w := ^binary.LittleEndian.Uint64(bitmap)
	first := bits.OnesCount64(w)        // zeros in the first word
	inSecond := ^(bucket - first) >> 63 // all ones, or 0
	w ^= (w ^ ^binary.LittleEndian.Uint64(bitmap[8:])) & uint64(inSecond)
	n := bucket - first&inSecond
	zero := 64&inSecond + selectBit(w, n)
	if n >= bits.OnesCount64(w) { // the third word: one in 30
		n -= bits.OnesCount64(w)
		zero = 128 + selectBit(^binary.LittleEndian.Uint64(bitmap[16:]), n)
	}
	ones, remainders := at+uint64(zero+1)/8, at-uint64(zero-bucket) // where the bucket's begin, and end
	if ones+8 > uint64(len(f.data)) || remainders-8 > uint64(len(f.data)-8) {
		return true
	}
	keys := bits.TrailingZeros64(^(binary.LittleEndian.Uint64(f.data[ones:]) >> (uint(zero+1) % 8)))
	const low, seven = 0x0101010101010101, 0x7f7f7f7f7f7f7f7f
	x := binary.LittleEndian.Uint64(f.data[remainders-8:]) ^ uint64(remainder)*low
	equal := ^((x&seven + seven) | x | seven) // the high bit of each byte of x that is 0
	return equal>>(64-8*uint(keys)) != 0 || keys > 8+int(early)
}

// selectBit returns the place of the n-th one in w, from 0 on. If there are not so many, it is any.
func selectBit(w uint64, n int) int {
	const low, high = 0x0101010101010101, 0x8080808080808080
	s := w - w>>1&0x5555555555555555
	s = s&0x3333333333333333 + s>>2&0x3333333333333333
	s = (s + s>>4) & 0x0f0f0f0f0f0f0f0f * low // in each byte: the ones up to its end
	shift := 8 * bits.OnesCount64(((uint64(n)*low|high)-s)&high) & 63
	n -= int(s << 8 >> shift & 0xff)
	return shift + int(bitOfByte[n&7][w>>shift&0xff])
}

// bitOfByte has the place of the n-th one of each byte.
var bitOfByte = func() (t [8][256]uint8) {
	for b := range 256 {
		for n, left := 0, b; left != 0; n++ {
			t[n][b] = uint8(bits.TrailingZeros8(uint8(left)))
			left &= left - 1
		}
	}
	return t
}()
