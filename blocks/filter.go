package blocks

import (
	"encoding/binary"
	"hash/crc32"
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

// filter answers for absent keys.
type filter struct {
	data    []byte   // the whole section, on the heap or in the map; nil where it is read from the file
	length  int64    // of the section
	starts  []byte   // two bytes for each block: where its bitmap begins, behind the base
	bases   []uint64 // of each superblock
	buckets uint64
	nothing byte // 0, which the compiler does not know

	// What follows is of a filter that is not on the heap. sums[i] is the CRC of the section up to the end of
	// chunk i, by which a chunk is checked whenever it is read; trusted has a bit for each chunk that may be
	// read through the map. See trustedPages.
	sums    []uint32
	trusted trustedPages
}

const (
	filterChunk = 4096 // bytes of a filter that are read at once
	filterReach = 200  // bytes at most before a bitmap that are looked at, and bitmapSize+8 behind its beginning
)

// parseFilter decodes a filter whose bytes are and stay in memory.
func parseFilter(b []byte) (*filter, error) {
	tables, err := filterTables(b, int64(len(b)))
	if err != nil {
		return nil, err
	}
	f, err := newFilter(b[len(b)-tables:], int64(len(b)))
	if err == nil {
		f.data = b
	}
	return f, err
}

// filterTables returns the length of what stands behind the blocks of a filter of length bytes that ends with tail.
func filterTables(tail []byte, length int64) (int, error) {
	if len(tail) < 4 {
		return 0, errSection
	}
	blocks := int64(binary.LittleEndian.Uint32(tail[len(tail)-4:]))
	tables := 2*blocks + 8*((blocks+superBlocks-1)/superBlocks) + 4
	if blocks > maxFilterBlock || blocks > 0 && length < tables+filterFront+filterBack || blocks == 0 && length != 4 {
		return 0, errSection
	}
	return int(tables), nil
}

// newFilter decodes the tables of a filter of length bytes, and keeps them. The offsets in the rest of it are checked
// whenever they are used.
func newFilter(tables []byte, length int64) (*filter, error) {
	blocks := int(binary.LittleEndian.Uint32(tables[len(tables)-4:]))
	f := &filter{length: length, buckets: uint64(blocks) << bucketBits, bases: make([]uint64, (blocks+superBlocks-1)/superBlocks)}
	d := decoder{b: tables}
	f.starts = d.bytes(2 * blocks)
	for i := range f.bases {
		f.bases[i] = d.u64()
		if f.bases[i] != passesAll && f.bases[i] > uint64(length)-uint64(len(tables)) {
			return nil, errSection
		}
	}
	return f, d.err
}

func (f *filter) empty() bool { return f.buckets == 0 }

// memory is what the filter takes on the heap beside its data, in bytes.
func (f *filter) memory() int64 {
	return int64(len(f.starts) + 8*len(f.bases) + 4*len(f.sums) + 8*len(f.trusted))
}

// place is where in a filter the answer for a hash is.
type place struct {
	at        uint64 // where the bitmap begins; nowhere or anywhere if that is the answer
	bucket    int    // in the block
	remainder byte
}

const (
	nowhere  = 0          // the key is in no block
	anywhere = ^uint64(0) // all keys pass
)

func (f *filter) locate(hash uint64) place {
	bucket, fraction := bits.Mul64(hash&filterHash, f.buckets)
	block := bucket >> bucketBits
	if 2*block+2 > uint64(len(f.starts)) {
		return place{at: nowhere} // there are none
	}
	base := f.bases[block>>superBits]
	if base == passesAll {
		return place{at: anywhere}
	}
	at := base + uint64(binary.LittleEndian.Uint16(f.starts[2*block:]))
	if at < filterFront || at+bitmapSize > uint64(f.length) {
		at = anywhere // which is damage: the page decides
	}
	return place{at, int(bucket % blockBuckets), byte(fraction >> 56)}
}

// contains is false only for keys that are not in the block. It is for a filter that is in memory.
func (f *filter) contains(hash uint64) bool {
	p := f.locate(hash)
	return p.at != nowhere && (p.at == anywhere || f.bucketContains(f.data, p.at, p.bucket, p.remainder))
}

// chunks returns the first and the last chunk that bucketContains looks at.
func (f *filter) chunks(at uint64) (first, last int) {
	end := min(at+bitmapSize+8, uint64(f.length)-1)
	return int((at - min(at, filterReach)) / filterChunk), int(end / filterChunk)
}

// trusts reports whether the chunks that bucketContains looks at may be read through the map.
func (f *filter) trusts(at uint64) bool {
	first, last := f.chunks(at)
	return f.trusted.has(first) && (first == last || f.trusted.has(last))
}

// checkChunk reports whether b is chunk i as it was when the block was opened.
func (f *filter) checkChunk(b []byte, i int) bool {
	before := uint32(0)
	if i > 0 {
		before = f.sums[i-1]
	}
	return crc32.Update(before, castagnoli, b) == f.sums[i]
}

// bucketContains looks for a remainder in a bucket of the block whose bitmap begins at data[at]. What
// cannot be is true: then the page decides. So it does for a bucket of more than eight keys.
//
// In which word of the bitmap the bucket is and how many keys it has is as good as random. There
// are no branches on that: they would be mispredicted, and late, when the memory has answered.
func (f *filter) bucketContains(data []byte, at uint64, bucket int, remainder byte) bool {
	if at+bitmapSize > uint64(len(data)) || at < filterFront {
		return true
	}
	// A bucket's remainders lie about here, mostly in another cache line than the bitmap: it is
	// fetched now, and not only when the bitmap has come.
	early := data[at-uint64(bucket)] & f.nothing
	bitmap := data[at : at+bitmapSize]
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
	if ones+8 > uint64(len(data)) || remainders-8 > uint64(len(data)-8) {
		return true
	}
	keys := bits.TrailingZeros64(^(binary.LittleEndian.Uint64(data[ones:]) >> (uint(zero+1) % 8)))
	const low, seven = 0x0101010101010101, 0x7f7f7f7f7f7f7f7f
	x := binary.LittleEndian.Uint64(data[remainders-8:]) ^ uint64(remainder)*low
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
