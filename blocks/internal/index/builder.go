package index

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"sequins/blocks/internal/spill"
)

// ErrTooLarge is returned for a page or separators that are too large for an index.
var ErrTooLarge = errors.New("too large")

// Builder gathers one separator and one location a group of pages, and encodes the index. A page with many records is a group
// of its own.
//
// Separators are front-coded, as keys can be long and agree with their neighbours in almost all of it: of each only
// what differs from the one before is kept. What exceeds spillSeparators goes into a file, which Close deletes.
type Builder struct {
	coded     []byte     // of each separator but the first group's: uvarint shared, uvarint length of the rest, the rest
	last      []byte     // the last separator
	locations []Location // of the groups that have ended, without their separator lengths
	runs      []byte     // of those that have several pages
	spill     spill.File // the coded separators before those in coded
	group     group      // the last one
	next      []uint64   // hashes of the records of the next page, up to one more than fewRecords
}

// NewBuilder returns a builder of an empty index with its temporary file in dir; "" is that of the system.
func NewBuilder(dir string) Builder { return Builder{spill: spill.File{Dir: dir}} }

// spillSeparators is how many bytes of coded separators are kept in memory, and one separator more.
const spillSeparators = 4 << 20

// AddRecord adds a record with a key of this hash to the page that is added next.
func (b *Builder) AddRecord(hash uint64) {
	if b.Few() {
		b.next = append(b.next, hash)
	}
}

// Few reports whether the page that is added next has few records. It should begin where the one before ends.
func (b *Builder) Few() bool { return len(b.next) <= fewRecords }

// Add appends a page. separator is the shortest string greater than every key before the page
// and not greater than the page's first key; it is ignored for the first page.
func (b *Builder) Add(separator []byte, offset int64, length int, packed bool) error {
	if offset > maxOffset-MaxLength || length > MaxLength {
		return fmt.Errorf("page of %d bytes at offset %d: %w", length, offset, ErrTooLarge)
	}
	l, hashes := makeLocation(offset, length, packed), b.next
	if !b.Few() {
		hashes = nil
	}
	b.next = b.next[:0]
	if b.group.add(l, hashes) {
		return nil
	}
	b.endGroup()
	b.group.add(l, hashes)
	if len(b.locations) == 0 {
		return nil
	}
	shared := commonPrefix(b.last, separator)
	b.coded = binary.AppendUvarint(b.coded, uint64(shared))
	b.coded = binary.AppendUvarint(b.coded, uint64(len(separator)-shared))
	b.coded = append(b.coded, separator[shared:]...)
	b.last = append(b.last[:shared], separator[shared:]...)
	if len(b.coded) < spillSeparators {
		return nil
	}
	if _, err := b.spill.Append(b.coded); err != nil {
		return fmt.Errorf("index: %w", err)
	}
	b.coded = b.coded[:0]
	return nil
}

func (b *Builder) endGroup() {
	g := &b.group
	if len(g.pages) == 0 {
		return
	}
	l := g.pages[0]
	if len(g.pages) > 1 {
		l = makeLocation(int64(len(b.runs)), 0, false)
		b.runs = g.appendRun(b.runs)
	}
	b.locations = append(b.locations, l)
	*g = group{pages: g.pages[:0], hashes: g.hashes[:0]}
}

// Close releases the builder's memory and file.
func (b *Builder) Close() {
	b.spill.Close()
	*b = Builder{}
}

// pieceSize is how much of an index is encoded at a time, in bytes.
const pieceSize = 32 << 10

// WriteTo gives the encoded index of a block with these keys to write, in pieces from its beginning to its end.
func (b *Builder) WriteTo(firstKey, lastKey []byte, write func([]byte) error) error {
	b.endGroup()
	prefix := firstKey[:commonPrefix(firstKey, lastKey)]
	le := binary.LittleEndian
	head := le.AppendUint32(nil, uint32(len(b.locations)))
	head = le.AppendUint32(head, uint32(len(prefix)))
	head = le.AppendUint32(head, uint32(len(b.runs)))
	if err := write(append(head, prefix...)); err != nil {
		return err
	}
	tails, ends := uint64(0), uint32(0) // bytes of them, so far
	fences := func(dst, separator []byte, _ Location) []byte { return le.AppendUint64(dst, Fence(separator)) }
	locations := func(dst, separator []byte, l Location) []byte {
		tails += uint64(len(tail(separator)))
		return le.AppendUint64(dst, uint64(l)|uint64(min(len(separator), longSeparator)))
	}
	tailEnds := func(dst, separator []byte, _ Location) []byte {
		ends += uint32(len(tail(separator)))
		return le.AppendUint32(dst, ends)
	}
	if err := b.each(prefix, write, fences); err != nil {
		return err
	}
	if err := b.each(prefix, write, locations); err != nil {
		return err
	}
	if tails > math.MaxUint32 || len(b.runs) > math.MaxUint32 {
		return fmt.Errorf("index: separators of %d bytes and runs of %d: %w", tails, len(b.runs), ErrTooLarge)
	}
	for piece := range slices.Chunk(b.runs, pieceSize) {
		if err := write(piece); err != nil {
			return err
		}
	}
	if tails == 0 {
		return write(le.AppendUint32(nil, 0))
	}
	if err := write(le.AppendUint32(nil, uint32(len(b.locations)))); err != nil {
		return err
	}
	if err := b.each(prefix, write, tailEnds); err != nil {
		return err
	}
	return b.each(prefix, write, func(dst, separator []byte, _ Location) []byte { return append(dst, tail(separator)...) })
}

// tail is what of a separator its fence does not have.
func tail(separator []byte) []byte { return separator[min(len(separator), longSeparator-1):] }

// each gives write what encode appends for each group, in pieces. The separators are without the prefix.
func (b *Builder) each(prefix []byte, write func([]byte) error, encode func(dst, separator []byte, l Location) []byte) error {
	in := b.reader()
	buf := make([]byte, 0, pieceSize)
	var separator, rest []byte
	for i, l := range b.locations {
		if i > 0 { // the first group takes every key below the second
			var err error
			if separator, err = nextSeparator(in, separator); err != nil {
				return fmt.Errorf("index: %w", err)
			}
			rest = separator[len(prefix):]
		}
		buf = encode(buf, rest, l)
		if len(buf) >= pieceSize {
			if err := write(buf); err != nil {
				return err
			}
			buf = buf[:0]
		}
	}
	return write(buf)
}

// reader reads the coded separators from the first to the last.
func (b *Builder) reader() *bufio.Reader {
	var in io.Reader = bytes.NewReader(b.coded)
	if b.spill.Size() > 0 {
		in = io.MultiReader(b.spill.Reader(), in)
	}
	return bufio.NewReaderSize(in, pieceSize)
}

// nextSeparator decodes the separator that follows last, whose memory it takes.
func nextSeparator(in *bufio.Reader, last []byte) ([]byte, error) {
	shared, err := binary.ReadUvarint(in)
	if err != nil {
		return nil, err
	}
	n, err := binary.ReadUvarint(in)
	if err != nil {
		return nil, err
	}
	separator := slices.Grow(last[:shared], int(n))[:shared+n]
	_, err = io.ReadFull(in, separator[shared:])
	return separator, err
}
