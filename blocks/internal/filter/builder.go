package filter

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"

	"sequins/blocks/internal/spill"
)

const (
	bins        = 256  // what the hashes are gathered by, so that they need not be sorted all at once
	spillHashes = 1280 // hashes of a bin that are written at once; were it a power of two, the ends of all bins would compete for a few lines of the processor's cache
)

// Builder gathers the hashes of a block's keys and encodes the filter. The hashes of a bin that is full go into a file,
// which Close deletes.
type Builder struct {
	count   int
	bins    [bins][]uint32 // hashes by their upper eight bits, of each the 32 bits behind those
	spilled [bins][]int64  // offsets of the runs of spillHashes hashes
	spill   spill.File
	buf     []byte
}

// NewBuilder returns a builder of an empty filter with its temporary file in dir; "" is that of the system.
func NewBuilder(dir string) Builder {
	return Builder{spill: spill.File{Dir: dir}}
}

// Add adds the XXH64 of a key.
func (b *Builder) Add(hash uint64) error {
	i := hash >> 56
	b.bins[i] = append(b.bins[i], uint32(hash>>24))
	b.count++
	if len(b.bins[i]) < spillHashes {
		return nil
	}
	return b.spillBin(int(i))
}

func (b *Builder) spillBin(i int) error {
	b.buf = b.buf[:0]
	for _, h := range b.bins[i] {
		b.buf = binary.LittleEndian.AppendUint32(b.buf, h)
	}
	offset, err := b.spill.Append(b.buf)
	if err != nil {
		return err
	}
	b.spilled[i] = append(b.spilled[i], offset)
	b.bins[i] = b.bins[i][:0]
	return nil
}

// bin returns the hashes of one bin, in the order in which they were added.
func (b *Builder) bin(dst []uint32, i int) ([]uint32, error) {
	b.buf = slices.Grow(b.buf[:0], 4*spillHashes)[:4*spillHashes]
	for _, off := range b.spilled[i] {
		if _, err := b.spill.ReadAt(b.buf, off); err != nil {
			return nil, err
		}
		for h := b.buf; len(h) > 0; h = h[4:] {
			dst = append(dst, binary.LittleEndian.Uint32(h))
		}
	}
	return append(dst, b.bins[i]...), nil
}

// Close releases the builder's memory and file.
func (b *Builder) Close() {
	b.spill.Close()
	b.bins = [bins][]uint32{}
}

// WriteTo gives the encoded filter to write, in pieces from its beginning to its end, and closes the builder.
func (b *Builder) WriteTo(write func([]byte) error) error {
	defer b.Close()
	if b.count == 0 {
		return write(make([]byte, 4))
	}
	e := encoder{write: write, blocks: (b.count + blockBuckets - 1) / blockBuckets}
	e.data = make([]byte, frontSize)
	var hashes []uint32
	for i := range bins {
		var err error
		if hashes, err = b.bin(hashes[:0], i); err != nil {
			return fmt.Errorf("filter: %w", err)
		}
		if err := e.bin(uint64(i)<<56, hashes); err != nil {
			return err
		}
	}
	return e.finish()
}

// encoder makes the filter out of hashes that come bin by bin.
type encoder struct {
	write  func([]byte) error
	blocks int

	// Of the bin: where in entries each of its blocks begins, and its keys, a bucket in the upper
	// byte and a remainder in the lower.
	first   int // block
	begins  []uint32
	entries []uint16
	last    []uint16 // keys of block first that the bin before has had

	data   []byte // of the superblock
	offset uint64 // of data in the section
	starts []byte
	bases  []uint64
}

// place returns the block that a hash belongs to, and its bucket and remainder there.
func (e *encoder) place(hash uint64) (block int, entry uint16) {
	bucket, fraction := bits.Mul64(hash, uint64(e.blocks)<<bucketBits)
	return int(bucket >> bucketBits), uint16(bucket%blockBuckets<<8 | fraction>>56)
}

// bin encodes the blocks that end with the hashes of a bin, whose upper bits are prefix.
func (e *encoder) bin(prefix uint64, hashes []uint32) error {
	e.sortByBlock(prefix, hashes)
	for i := range len(e.begins) - 2 { // the last one may go on in the next bin
		if err := e.block(e.entries[e.begins[i]:e.begins[i+1]]); err != nil {
			return err
		}
	}
	e.first += len(e.begins) - 2
	e.last = append(e.last[:0], e.entries[e.begins[len(e.begins)-2]:]...)
	return nil
}

// sortByBlock sets begins and entries.
func (e *encoder) sortByBlock(prefix uint64, hashes []uint32) {
	end, _ := e.place(prefix | (1<<56 - 1))
	n := end + 1 - e.first
	e.begins = append(e.begins[:0], make([]uint32, n+2)...)
	begins := e.begins[2:] // counts, and then the ends so far, of the blocks before
	begins[0] += uint32(len(e.last))
	for _, h := range hashes {
		block, _ := e.place(prefix | uint64(h)<<24)
		begins[block-e.first]++
	}
	for i := 1; i < n; i++ {
		begins[i] += begins[i-1]
	}
	// begins[i-1], which is e.begins[i+1], is where block i begins, and moves on to where it ends.
	begins = e.begins[1:]
	e.entries = slices.Grow(e.entries[:0], len(e.last)+len(hashes))[:len(e.last)+len(hashes)]
	begins[0] = uint32(copy(e.entries, e.last))
	for _, h := range hashes {
		block, entry := e.place(prefix | uint64(h)<<24)
		at := &begins[block-e.first]
		e.entries[*at] = entry
		*at++
	}
	e.begins = e.begins[:n+1]
}

func (e *encoder) block(entries []uint16) error {
	if len(e.starts)/2%superBlocks == 0 {
		if err := e.flush(); err != nil {
			return err
		}
		e.bases = append(e.bases, e.offset)
	}
	base, start := &e.bases[len(e.bases)-1], len(e.data)+len(entries)
	if *base == passesAll || start > 1<<16-1 || len(entries) > maxBlockKeys {
		// This takes keys that were made for it.
		*base, start, e.data = passesAll, 0, e.data[:0]
	} else {
		e.append(entries)
	}
	e.starts = append(e.starts, byte(start), byte(start>>8))
	return nil
}

func (e *encoder) append(entries []uint16) {
	var first [blockBuckets]uint8 // key of each bucket
	for _, entry := range entries {
		first[entry>>8]++
	}
	n := len(entries)
	start, size := len(e.data), n+(n+blockBuckets+8)/8
	e.data = slices.Grow(e.data, size)[:start+size]
	remainders, bitmap := e.data[start:start+n], e.data[start+n:]
	for i := range bitmap {
		bitmap[i] = 0xff
	}
	bitmap[len(bitmap)-1] = 1<<(uint(n)%8) - 1 // of n+65 bits, a 0 and those behind it
	sum := uint8(0)
	for i := range first {
		first[i], sum = sum, sum+first[i]
		zero := uint(i) + uint(first[i])
		bitmap[zero/8] &^= 1 << (zero % 8)
	}
	for _, entry := range entries {
		next := &first[entry>>8]
		remainders[n-1-int(*next)] = byte(entry)
		*next++
	}
}

// flush writes what there is of a superblock.
func (e *encoder) flush() error {
	err := e.write(e.data)
	e.offset += uint64(len(e.data))
	e.data = e.data[:0]
	return err
}

// finish encodes what is left, and writes the tables.
func (e *encoder) finish() error {
	if err := e.block(e.last); err != nil {
		return err
	}
	e.data = append(e.data, make([]byte, backSize)...)
	if err := e.flush(); err != nil {
		return err
	}
	table := e.starts
	for _, base := range e.bases {
		table = binary.LittleEndian.AppendUint64(table, base)
	}
	return e.write(binary.LittleEndian.AppendUint32(table, uint32(e.blocks)))
}
