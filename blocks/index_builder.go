package blocks

import (
	"encoding/binary"
	"fmt"
)

// indexBuilder gathers one separator and one location a page.
type indexBuilder struct {
	separators []byte
	ends       []int
	locations  []location // without their separator lengths
}

// add appends a page. separator is the shortest string greater than every key before the page
// and not greater than the page's first key; it is ignored for the first page.
func (b *indexBuilder) add(separator []byte, offset int64, length int, packed bool) error {
	if offset > maxOffset || length > maxStored {
		return fmt.Errorf("page of %d bytes at offset %d: %w", length, offset, ErrTooLarge)
	}
	if len(b.ends) > 0 {
		b.separators = append(b.separators, separator...)
	}
	b.ends = append(b.ends, len(b.separators))
	b.locations = append(b.locations, makeLocation(offset, length, packed))
	return nil
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
	tails, ends := uint32(0), uint32(0) // bytes of them, so far
	fences := func(dst, separator []byte, _ location) []byte { return le.AppendUint64(dst, fence(separator)) }
	locations := func(dst, separator []byte, l location) []byte {
		tails += uint32(len(tail(separator)))
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
	buf := make([]byte, 0, indexPiece)
	for i, l := range b.locations {
		var rest []byte
		if i > 0 { // the first page takes every key below the second
			rest = b.separators[b.ends[i-1]+len(prefix) : b.ends[i]]
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
