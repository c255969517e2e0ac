package blocks

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
)

// indexBuilder gathers one separator and one location a page.
//
// Separators are front-coded, as keys can be long and agree with their neighbours in almost all of it: of each only
// what differs from the one before is kept. What exceeds spillSeparators goes into a file, which close closes.
type indexBuilder struct {
	dir       string     // for the spill file; "" is that of the system
	coded     []byte     // of each separator: uvarint shared, uvarint length of the rest, the rest
	last      []byte     // the last separator
	locations []location // without their separator lengths
	spill     *os.File   // the coded separators before those in coded
}

// spillSeparators is how many bytes of coded separators are kept in memory, and one separator more.
const spillSeparators = 4 << 20

// add appends a page. separator is the shortest string greater than every key before the page
// and not greater than the page's first key; it is ignored for the first page.
func (b *indexBuilder) add(separator []byte, offset int64, length int, packed bool) error {
	if offset > maxOffset || length > maxStored {
		return fmt.Errorf("page of %d bytes at offset %d: %w", length, offset, ErrTooLarge)
	}
	if len(b.locations) == 0 {
		separator = nil
	}
	shared := commonPrefix(b.last, separator)
	b.coded = binary.AppendUvarint(b.coded, uint64(shared))
	b.coded = binary.AppendUvarint(b.coded, uint64(len(separator)-shared))
	b.coded = append(b.coded, separator[shared:]...)
	b.last = append(b.last[:shared], separator[shared:]...)
	b.locations = append(b.locations, makeLocation(offset, length, packed))
	if len(b.coded) < spillSeparators {
		return nil
	}
	return b.spillCoded()
}

func (b *indexBuilder) spillCoded() (err error) {
	if b.spill == nil {
		if b.spill, err = createUnlinked(b.dir, "index-*.tmp"); err != nil {
			return fmt.Errorf("index: %w", err)
		}
	}
	if _, err := b.spill.Write(b.coded); err != nil {
		return fmt.Errorf("index: %w", err)
	}
	b.coded = b.coded[:0]
	return nil
}

// createUnlinked creates a file that is gone with its descriptor, whatever happens.
func createUnlinked(dir, pattern string) (*os.File, error) {
	f, err := os.CreateTemp(dir, pattern)
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (b *indexBuilder) close() {
	if b.spill != nil {
		_ = b.spill.Close()
		b.spill = nil
	}
}

// indexPiece is how much of an index is encoded at a time, in bytes.
const indexPiece = 32 << 10

// writeTo gives the encoded index to write, in order, some of it at a time. prefix begins every key of the block.
func (b *indexBuilder) writeTo(prefix []byte, write func([]byte) error) error {
	le := binary.LittleEndian
	head := le.AppendUint32(nil, uint32(len(b.locations)))
	head = le.AppendUint32(head, uint32(len(prefix)))
	if err := write(append(head, prefix...)); err != nil {
		return err
	}
	tails, ends := uint64(0), uint32(0) // bytes of them, so far
	fences := func(dst, separator []byte, _ location) []byte { return le.AppendUint64(dst, fence(separator)) }
	locations := func(dst, separator []byte, l location) []byte {
		tails += uint64(len(tail(separator)))
		return le.AppendUint64(dst, uint64(l)|uint64(min(len(separator), longSeparator)))
	}
	tailEnds := func(dst, separator []byte, _ location) []byte {
		ends += uint32(len(tail(separator)))
		return le.AppendUint32(dst, ends)
	}
	if err := b.each(prefix, write, fences); err != nil {
		return err
	}
	if err := b.each(prefix, write, locations); err != nil {
		return err
	}
	if tails > math.MaxUint32 {
		return fmt.Errorf("index: separators of %d bytes: %w", tails, ErrTooLarge)
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
	return b.each(prefix, write, func(dst, separator []byte, _ location) []byte { return append(dst, tail(separator)...) })
}

// tail is what of a separator its fence does not have.
func tail(separator []byte) []byte { return separator[min(len(separator), longSeparator-1):] }

// each gives write what encode appends for each page, some of them at a time. The separators are without the
// prefix.
func (b *indexBuilder) each(prefix []byte, write func([]byte) error, encode func(dst, separator []byte, l location) []byte) error {
	in := b.reader()
	buf := make([]byte, 0, indexPiece)
	var separator []byte
	for i, l := range b.locations {
		var err error
		if separator, err = nextSeparator(in, separator); err != nil {
			return fmt.Errorf("index: %w", err)
		}
		var rest []byte
		if i > 0 { // the first page takes every key below the second
			rest = separator[len(prefix):]
		}
		buf = encode(buf, rest, l)
		if len(buf) >= indexPiece {
			if err := write(buf); err != nil {
				return err
			}
			buf = buf[:0]
		}
	}
	return write(buf)
}

// reader reads the coded separators from the first to the last.
func (b *indexBuilder) reader() *bufio.Reader {
	var in io.Reader = bytes.NewReader(b.coded)
	if b.spill != nil {
		in = io.MultiReader(io.NewSectionReader(b.spill, 0, math.MaxInt64), in)
	}
	return bufio.NewReaderSize(in, indexPiece)
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
