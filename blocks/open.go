package blocks

import (
	"errors"
	"fmt"
	"hash/crc32"
	"sync"
	"sync/atomic"

	"sequins/blocks/internal/filter"
	"sequins/blocks/internal/index"
)

const (
	maxSmall     = 64 << 10              // bytes of a block that is not mapped and whose file does not stay open
	tailSize     = 32 << 10              // bytes at the end of a larger block that are read first: most indexes lie in them
	maxHeld      = 128 << 20             // bytes of pages of small blocks that are kept on the heap, for all blocks
	filterBuffer = 64 * filter.ChunkSize // bytes of a filter that are read at once when a block is opened
)

// heldBytes is how many bytes of pages of small blocks are kept.
var heldBytes atomic.Int64

// openBuffers has memory for opening blocks, as many of them are opened one after the other.
var openBuffers = sync.Pool{New: func() any { return new(openBuffer) }}

// openBuffer is what was read of the end of a file, and where that begins.
type openBuffer struct {
	tail []byte
	at   int64
	rest []byte
}

// load reads all of a block but its pages.
func (r *Reader) load() error {
	if r.size < footerSize {
		return r.corrupt(-1, 0, fmt.Errorf("%d bytes are less than a footer", r.size))
	}
	b := openBuffers.Get().(*openBuffer)
	defer openBuffers.Put(b)
	n := r.size
	if n > maxSmall {
		n = tailSize
	}
	end := r.size - footerSize
	var err error
	b.at = r.size - n
	if b.tail, err = r.read(b.tail, b.at, int(n)); err != nil {
		return r.broken(-1, end, err)
	}
	foot := b.tail[n-footerSize:]
	if r.footer, err = parseFooter(foot, r.size); err != nil {
		return r.corrupt(-1, end, err)
	}
	if r.file != nil {
		r.file.SetTail(foot)
	}
	if err := r.loadSections(b); err != nil {
		return err
	}
	if r.index.Pages() != r.props.Pages || r.filter.Empty() != (r.props.Records == 0) {
		return r.corrupt(-1, r.footer.properties.offset, errors.New("properties disagree with the index or the filter"))
	}
	return nil
}

func (r *Reader) loadSections(b *openBuffer) error {
	for _, part := range []struct {
		s     section
		parse func([]byte) error
	}{
		{r.footer.properties, func(b []byte) (err error) { r.props, err = parseProperties(b); return }},
		{r.footer.symbols, func(b []byte) (err error) { r.tables, err = parseSymbols(b, r.size); return }},
		{r.footer.index, func(b []byte) (err error) { r.index, err = index.Parse(b, trailerSize, r.footer.index.offset); return }},
	} {
		data, err := r.readSection(part.s, b)
		if err != nil {
			return err
		}
		if err := part.parse(data); err != nil {
			return r.corrupt(-1, part.s.offset, err)
		}
	}
	return r.loadFilter(b)
}

// hold keeps the pages of a small block, unless too much is kept already, or there is an error, which may be of another page than the
// one that is to be read.
func (r *Reader) hold(s *Scratch) error {
	n := r.footer.index.offset
	if heldBytes.Add(n) > maxHeld {
		heldBytes.Add(-n)
		return nil
	}
	pages, err := r.read(nil, 0, int(n))
	s.reads++
	for i := 0; err == nil && i < r.props.Pages; i++ {
		l := r.index.Location(i)
		err = r.checkPage(i, pages[l.Offset():][:l.Length()])
	}
	if err != nil || !r.held.CompareAndSwap(nil, &pages) {
		heldBytes.Add(-n)
	}
	return err
}

// readSection returns a section, which is valid until the next one is read.
func (r *Reader) readSection(s section, b *openBuffer) ([]byte, error) {
	data, err := r.readPart(s.offset, s.length, b)
	if err == nil && crc32.Checksum(data, castagnoli) != s.crc {
		err = r.corrupt(-1, s.offset, errChecksum)
	}
	return data, err
}

// readPart returns n bytes of the file, which are valid until the next ones are read.
func (r *Reader) readPart(off, n int64, b *openBuffer) ([]byte, error) {
	if off >= b.at {
		return b.tail[off-b.at:][:n], nil
	}
	var err error
	if b.rest, err = r.read(b.rest, off, int(n)); err != nil {
		return nil, r.broken(-1, off, err)
	}
	return b.rest, nil
}

// loadFilter reads the filter in pieces. It keeps it all, or if it will be read through a map, its checksums and the tables at its end.
func (r *Reader) loadFilter(b *openBuffer) error {
	s := r.footer.filter
	end, err := r.readPart(s.offset+max(s.length-4, 0), min(s.length, 4), b)
	if err != nil {
		return err
	}
	scan, err := filter.NewScanner(end, s.length, r.file == nil || r.size <= maxSmall)
	if err != nil {
		return r.corrupt(-1, s.offset, err)
	}
	for at := int64(0); at < s.length; at += filterBuffer {
		piece, err := r.readPart(s.offset+at, min(filterBuffer, s.length-at), b)
		if err != nil {
			return err
		}
		scan.Add(piece)
	}
	if scan.CRC() != s.crc {
		return r.corrupt(-1, s.offset, errChecksum)
	}
	if r.filter, err = scan.Filter(); err != nil {
		return r.corrupt(-1, s.offset, err)
	}
	return nil
}
