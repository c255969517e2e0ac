// Package filter answers for keys that are not in a block, so that most of them need no page. It is a set of short hashes.
//
// A [Builder] encodes the filter of a block, and [Filter] asks it. Reading the block's file and deciding which parts of it
// are read through the map is the caller's part.
//
// The filter is one in the manner of Elias and Fano: about 10.3 bits a key, and 1 absent key in 256 passes it. Others of
// this quality take up to a tenth less and several times as long to build.
//
// The upper 40 bits of a key's XXH64, as a fraction of 1, times the number of buckets are the bucket
// that the key is in and, behind the point, an eight-bit remainder. There are as many buckets as
// keys. 64 buckets are a block of the filter:
//
//	the remainders of its n keys, bucket by bucket, from back to front: n bytes
//	a bitmap of n+65 bits: for every bucket a 0 and then a 1 for each of its keys; a 0 at the end
//
// so that one bucket is found by counting zeros, and its remainders by the ones before it.
package filter

import (
	"encoding/binary"
	"hash/crc32"
	"math/bits"

	"sequins/blocks/internal/decode"
)

const (
	hashBits     = ^uint64(1<<24 - 1) // the bits of a hash that count
	bucketBits   = 6                  // 64 buckets a block
	blockBuckets = 1 << bucketBits
	superBits    = 9 // 512 blocks begin within 64 KiB, so that two bytes are enough for where
	superBlocks  = 1 << superBits
	maxBlockKeys = 127 // so that a bitmap has no more than three words
	bitmapSize   = 3 * 8
	frontSize    = 64 // zeros before the first block and behind the last: contains reads ahead
	backSize     = 8
	passesAll    = ^uint64(0) // the base of superblocks that all keys pass
	maxBlocks    = 1 << 26    // more than there are keys for
)

// ChunkSize is the length in bytes of the parts of a filter that are read from the file and checked one by one.
const ChunkSize = 4096

// reach is how many bytes before a bitmap are read at most; behind its beginning it is bitmapSize+8.
const reach = 200

// Filter answers for absent keys. It is not changed after the block has been opened.
type Filter struct {
	data    []byte   // the whole section, on the heap or in the map; nil where it is read from the file
	length  int64    // of the section
	starts  []byte   // two bytes for each block: where its bitmap begins, behind the base
	bases   []uint64 // of each superblock
	sums    []uint32 // the CRC of the section up to the end of each chunk; nil for a filter on the heap
	buckets uint64
	nothing byte // 0, which the compiler does not know
}

// tablesSize returns the length of the tables behind the blocks of a filter of length bytes that ends with tail, of four
// bytes or more.
func tablesSize(tail []byte, length int64) (int, error) {
	if len(tail) < 4 {
		return 0, decode.ErrMalformed
	}
	blocks := int64(binary.LittleEndian.Uint32(tail[len(tail)-4:]))
	tables := 2*blocks + 8*((blocks+superBlocks-1)/superBlocks) + 4
	if blocks > maxBlocks || blocks > 0 && length < tables+frontSize+backSize || blocks == 0 && length != 4 {
		return 0, decode.ErrMalformed
	}
	return int(tables), nil
}

// newFilter decodes the tables of a filter of length bytes, and keeps them. The offsets in the rest of it are checked
// whenever they are used.
func newFilter(tables []byte, length int64) (*Filter, error) {
	blocks := int(binary.LittleEndian.Uint32(tables[len(tables)-4:]))
	f := &Filter{length: length, buckets: uint64(blocks) << bucketBits, bases: make([]uint64, (blocks+superBlocks-1)/superBlocks)}
	d := decode.New(tables)
	f.starts = d.Bytes(2 * blocks)
	for i := range f.bases {
		f.bases[i] = d.U64()
		if f.bases[i] != passesAll && f.bases[i] > uint64(length)-uint64(len(tables)) {
			return nil, decode.ErrMalformed
		}
	}
	return f, d.Err()
}

// Empty reports whether there are no keys.
func (f *Filter) Empty() bool { return f.buckets == 0 }

// Memory is what the filter takes on the heap beside its data, in bytes.
func (f *Filter) Memory() int64 {
	return int64(len(f.starts) + 8*len(f.bases) + 4*len(f.sums))
}

// Place is where in a filter the answer for a hash is.
type Place struct {
	at        uint64 // where the bitmap begins; nowhere or anywhere if that is the answer
	bucket    int    // in the block
	remainder byte
}

const (
	nowhere  = 0          // the key is in no block
	anywhere = ^uint64(0) // all keys pass
)

// Known reports whether the answer is known without the filter's data, and whether the key passes.
func (p Place) Known() (passes, known bool) {
	return p.at == anywhere, p.at == anywhere || p.at == nowhere
}

// Locate returns where the answer for a hash is.
func (f *Filter) Locate(hash uint64) Place {
	bucket, fraction := bits.Mul64(hash&hashBits, f.buckets)
	block := bucket >> bucketBits
	if 2*block+2 > uint64(len(f.starts)) {
		return Place{at: nowhere} // there are none
	}
	base := f.bases[block>>superBits]
	if base == passesAll {
		return Place{at: anywhere}
	}
	at := base + uint64(binary.LittleEndian.Uint16(f.starts[2*block:]))
	if at < frontSize || at+bitmapSize > uint64(f.length) {
		at = anywhere // which is damage: the page decides
	}
	return Place{at, int(bucket % blockBuckets), byte(fraction >> 56)}
}

// OnHeap reports whether all of the filter is on the heap.
func (f *Filter) OnHeap() bool { return f.sums == nil }

// SetMap gives the filter the map of its section.
func (f *Filter) SetMap(data []byte) { f.data = data }

// Chunks returns how many chunks a filter that is not on the heap has.
func (f *Filter) Chunks() int { return len(f.sums) }

// Chunk returns the bounds of chunk i in the section.
func (f *Filter) Chunk(i int) (from, to int64) {
	from = int64(i) * ChunkSize
	return from, min(from+ChunkSize, f.length)
}

// ChunksOf returns the first and the last chunk that Contains reads for p.
func (f *Filter) ChunksOf(p Place) (first, last int) {
	end := min(p.at+bitmapSize+8, uint64(f.length)-1)
	return int((p.at - min(p.at, reach)) / ChunkSize), int(end / ChunkSize)
}

// CheckChunk reports whether b is chunk i as it was when the block was opened.
func (f *Filter) CheckChunk(b []byte, i int) bool {
	before := uint32(0)
	if i > 0 {
		before = f.sums[i-1]
	}
	return crc32.Update(before, castagnoli, b) == f.sums[i]
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Contains reports whether the key of p may be in the block, by the filter's data in memory. The answer for p must not be
// known without it.
func (f *Filter) Contains(p Place) bool {
	return f.bucketContains(f.data, p.at, p.bucket, p.remainder)
}

// ContainsIn is Contains by the bytes of the section from offset on, which must have the chunks of p.
func (f *Filter) ContainsIn(data []byte, offset int64, p Place) bool {
	return f.bucketContains(data, p.at-uint64(offset), p.bucket, p.remainder)
}

// bucketContains looks for a remainder in a bucket of the block whose bitmap begins at data[at]. For what
// cannot be it returns true: then the page decides. So it does for a bucket of more than eight keys.
//
// In which word of the bitmap the bucket is and how many keys it has is as good as random. There
// are no branches on that: they would be mispredicted, and late, when the memory has answered.
func (f *Filter) bucketContains(data []byte, at uint64, bucket int, remainder byte) bool {
	if at+bitmapSize > uint64(len(data)) || at < frontSize {
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
