package blocks

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"os"

	"github.com/FastFilter/xorfilter"
)

// The filter is a binary fuse filter (Graf and Lemire, 2022) with 8-bit fingerprints: about 9.4
// bits a key, and 1 absent key in 256 passes it. It is cut into shards by the high bits of the
// key's hash, so that building it takes memory for one shard and not for all keys.
const (
	filterBuckets   = 256      // what the hashes are gathered by; shards are groups of buckets
	filterShardKeys = 96 << 10 // at most, until there are 256 shards: building larger ones misses the cache, twice as slow
	shardSize       = 24       // of a shard's entry in the table
	spillHashes     = 1024     // hashes of a bucket that are written at once
)

// filterBuilder gathers the hashes of a block's keys, those of full buckets in a file.
type filterBuilder struct {
	dir     string // for the spill file
	count   int
	buckets [filterBuckets][]uint64
	spilled [filterBuckets][]int64 // offsets of the runs of spillHashes hashes
	spill   *os.File
	end     int64
	buf     []byte
}

func (b *filterBuilder) add(hash uint64) error {
	b.count++
	i := hash >> 56
	b.buckets[i] = append(b.buckets[i], hash)
	if len(b.buckets[i]) < spillHashes || b.dir == "" {
		return nil
	}
	return b.spillBucket(int(i))
}

func (b *filterBuilder) spillBucket(i int) error {
	if b.spill == nil {
		f, err := os.CreateTemp(b.dir, "filter-*.tmp")
		if err != nil {
			return err
		}
		b.spill = f
		if err := os.Remove(f.Name()); err != nil { // gone with its descriptor, whatever happens
			return err
		}
	}
	b.buf = b.buf[:0]
	for _, h := range b.buckets[i] {
		b.buf = binary.LittleEndian.AppendUint64(b.buf, h)
	}
	if _, err := b.spill.WriteAt(b.buf, b.end); err != nil {
		return err
	}
	b.spilled[i] = append(b.spilled[i], b.end)
	b.end += int64(len(b.buf))
	b.buckets[i] = b.buckets[i][:0]
	return nil
}

// appendBucket appends the hashes of one bucket, in the order in which they were added.
func (b *filterBuilder) appendBucket(dst []uint64, i int) ([]uint64, error) {
	b.buf = append(b.buf[:0], make([]byte, 8*spillHashes)...)
	for _, off := range b.spilled[i] {
		if _, err := b.spill.ReadAt(b.buf, off); err != nil {
			return nil, err
		}
		for h := b.buf; len(h) > 0; h = h[8:] {
			dst = append(dst, binary.LittleEndian.Uint64(h))
		}
	}
	return append(dst, b.buckets[i]...), nil
}

func (b *filterBuilder) close() {
	if b.spill != nil {
		b.spill.Close()
		b.spill = nil
	}
}

// shards is a power of two, 0 for an empty block.
func (b *filterBuilder) shards() int {
	if b.count == 0 {
		return 0
	}
	return min(1<<bits.Len(uint((b.count-1)/filterShardKeys)), filterBuckets)
}

// writeTo gives the encoded filter to write, in order, a shard at a time: the table of the shards
// comes last.
func (b *filterBuilder) writeTo(write func([]byte) error) error {
	defer b.close()
	n := b.shards()
	var builder xorfilter.BinaryFuseBuilder
	var hashes []uint64
	var table []byte
	var end uint64
	for s := range n {
		hashes = hashes[:0]
		for i := s * filterBuckets / n; i < (s+1)*filterBuckets/n; i++ {
			var err error
			if hashes, err = b.appendBucket(hashes, i); err != nil {
				return fmt.Errorf("filter: %w", err)
			}
		}
		f, err := buildShard(&builder, hashes)
		if err != nil {
			return err
		}
		end += uint64(len(f.Fingerprints))
		table = appendShard(table, f, end)
		if err := write(f.Fingerprints); err != nil {
			return err
		}
	}
	return write(binary.LittleEndian.AppendUint32(table, uint32(n)))
}

func buildShard(builder *xorfilter.BinaryFuseBuilder, hashes []uint64) (xorfilter.BinaryFuse[uint8], error) {
	if len(hashes) == 0 {
		hashes = append(hashes, 0) // a shard without keys still needs a filter to ask
	}
	f, err := xorfilter.BuildBinaryFuse[uint8](builder, hashes)
	if err != nil {
		return f, fmt.Errorf("filter of %d keys: %w", len(hashes), err)
	}
	return f, nil
}

func appendShard(table []byte, f xorfilter.BinaryFuse[uint8], end uint64) []byte {
	table = binary.LittleEndian.AppendUint64(table, f.Seed)
	table = binary.LittleEndian.AppendUint32(table, f.SegmentLength)
	table = binary.LittleEndian.AppendUint32(table, f.SegmentCount)
	return binary.LittleEndian.AppendUint64(table, end)
}

// filter answers for absent keys. Its fingerprints stay where the section lies, in the map.
type filter struct {
	shards []xorfilter.BinaryFuse[uint8]
	shift  uint
}

// parseFilter checks every number by which the filter will index its fingerprints.
func parseFilter(b []byte) (*filter, error) {
	if len(b) < 4 {
		return nil, errSection
	}
	n := int(binary.LittleEndian.Uint32(b[len(b)-4:]))
	if n&(n-1) != 0 || n > filterBuckets || n*shardSize > len(b)-4 {
		return nil, errSection
	}
	fingerprints := b[:len(b)-4-n*shardSize]
	table := decoder{b: b[len(fingerprints) : len(b)-4]}
	f := &filter{shards: make([]xorfilter.BinaryFuse[uint8], n), shift: uint(64 - bits.TrailingZeros(uint(max(n, 1))))}
	var start uint64
	for i := range f.shards {
		s, end := parseShard(&table)
		if end < start || end > uint64(len(fingerprints)) {
			return nil, errSection
		}
		s.Fingerprints = fingerprints[start:end:end]
		if want := (uint64(s.SegmentCount) + 2) * uint64(s.SegmentLength); want != uint64(len(s.Fingerprints)) || s.SegmentCountLength == 0 {
			return nil, errSection
		}
		f.shards[i], start = s, end
	}
	if start != uint64(len(fingerprints)) {
		return nil, errSection
	}
	return f, table.err
}

// parseShard leaves a shard whose numbers cannot be right with a SegmentCountLength of 0.
func parseShard(d *decoder) (s xorfilter.BinaryFuse[uint8], end uint64) {
	s.Seed, s.SegmentLength, s.SegmentCount, end = d.u64(), d.u32(), d.u32(), d.u64()
	s.SegmentLengthMask = s.SegmentLength - 1
	if s.SegmentLength&s.SegmentLengthMask == 0 && uint64(s.SegmentCount)*uint64(s.SegmentLength) < 1<<32 {
		s.SegmentCountLength = s.SegmentCount * s.SegmentLength
	}
	return s, end
}

// contains is false only for keys that are not in the block.
func (f *filter) contains(hash uint64) bool {
	if len(f.shards) == 0 {
		return false
	}
	return f.shards[hash>>f.shift].Contains(hash)
}
