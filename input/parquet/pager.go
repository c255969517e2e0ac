package parquet

import (
	"bufio"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"
	"unsafe"
)

// Limits of pages. Headers are checked against these before anything is allocated.
const (
	// maxPage bounds the bytes of a page, compressed or not. Writers make pages of a mebibyte, or of one value.
	maxPage = 256 << 20
	// maxPageValues bounds the values of a page. Writers stop at some ten thousand, or when the page is full, which a
	// page of nulls never is.
	maxPageValues = 64 << 20
	// maxPageHeader bounds the bytes of a page's header. It may contain two values, the minimum and the maximum.
	maxPageHeader = 16 << 20
	// firstHeader is the number of bytes read first for a header.
	firstHeader = 1 << 10
	// maxHeld bounds the bytes of the pages, dictionaries and buffers of all columns of a reader.
	maxHeld = 1 << 30
	// missingHeader is how many bytes the size of a column chunk may lack: parquet-mr up to 1.2.8 left the header of
	// the dictionary page out of it.
	missingHeader = 100
)

var errLarge = fmt.Errorf("decompressed size exceeds %d bytes", maxPage)

// shared is the state shared by the columns of a file.
type shared struct {
	in     *tail
	packed []byte     // a page as it is in the file
	deltas [2][]int64 // decoded from a page
	held   int64      // bytes that all pagers and this have
	most   int64      // that these may be

	alwaysCompressed bool // pages V2 that claim to have uncompressed values have compressed ones
}

func (s *shared) hold(n int64) error {
	s.held += n
	if s.held > s.most {
		return fmt.Errorf("the pages of all columns together exceed %d bytes", s.most)
	}
	return nil
}

// room returns a slice of n bytes, which reuses b if its capacity suffices. Its content is undefined.
func (s *shared) room(b []byte, n int64) ([]byte, error) {
	if n <= int64(cap(b)) {
		return b[:n], nil
	}
	if err := s.hold(n - int64(cap(b))); err != nil {
		return nil, err
	}
	return make([]byte, n), nil
}

// A pager reads the pages of a column, one chunk after another. Such a page has been checked and unpacked, and its values
// are PLAIN or indexes. Its memory is used again for the next one.
type pager struct {
	shared *shared
	leaf   *node
	in     *bufio.Reader
	at     int64 // offset of the next byte
	last   int64 // where in ends
	chunk  chunk
	end    int64 // of the chunk
	left   int64 // values of the chunk

	data           []byte  // of a page
	plain          []byte  // values of a page that had another encoding
	dictionary     []value // of the chunk; nil if it has none so far
	dictionaryCost int64   // bytes that the dictionary is counted with
}

// pagerCost is what a pager with a buffer holds before its first page, in bytes. The values that a column takes out of
// a page at a time count, too.
func pagerCost(buffer int) int64 { return int64(buffer) + valuesAtOnce*(valueSize+4) }

// valueSize is how many bytes of memory a value has.
const valueSize = int64(unsafe.Sizeof(value{}))

func (p *pager) start(c chunk) error {
	size := p.shared.in.size
	start := c.dataAt
	if c.dictionary > 0 {
		start = min(start, c.dictionary)
	}
	switch {
	case c.encrypted:
		return unsupported("it is encrypted")
	case c.elsewhere:
		return unsupported("it is in another file")
	case !c.set || c.physical != p.leaf.physical || c.values < 0:
		return errFooter
	case start < 0 || c.compressed < 0 || c.compressed > size-start:
		return fmt.Errorf("it would have %d bytes at %d of %d", c.compressed, start, size)
	}
	p.chunk, p.left, p.end = c, c.values, start+c.compressed
	p.at, p.last = start, min(p.end+missingHeader, size)
	p.in.Reset(io.NewSectionReader(p.shared.in, p.at, p.last-p.at))
	p.shared.held -= p.dictionaryCost
	p.dictionary, p.dictionaryCost = nil, 0
	return nil
}

// finish checks that there are no more values. Some writers leave pages without values, or other bytes, behind the last
// one. A chunk without values may still have a dictionary, which nobody has read.
func (p *pager) finish() error {
	if p.left > 0 {
		return errLong
	}
	for p.chunk.values > 0 && p.at < p.end {
		h, err := p.header()
		switch {
		case p.shared.in.err != nil:
			return err
		case err != nil || h.headers != 1 || h.header != h.kind || h.compressed < 0 || h.compressed > p.end-p.at:
			return nil //nolint:nilerr // these are other bytes
		case h.isData() && h.values > 0:
			return errLong
		}
		if err := p.skip(h.compressed); err != nil {
			return err
		}
	}
	return nil
}

// next reads until there is a data page with values; the page has none after the last.
func (p *pager) next() (page, error) {
	for p.left > 0 {
		at := p.at
		d, err := p.read()
		if err != nil {
			return page{}, fmt.Errorf("the page at %d: %w", at, err)
		}
		if d.left > 0 {
			return d, nil
		}
	}
	return page{}, nil
}

// read reads a page. What it returns has no values if the page is a dictionary or is passed over.
func (p *pager) read() (page, error) {
	h, err := p.header()
	if err != nil {
		return page{}, err
	}
	if err := p.check(h); err != nil {
		return page{}, err
	}
	switch {
	case h.kind == pageDictionary:
		return page{}, p.readDictionary(h)
	case h.isData() && h.values > 0:
		p.left -= h.values
		if p.data, err = p.shared.room(p.data, h.uncompressed); err != nil {
			return page{}, err
		}
		if err := p.unpack(h, p.data); err != nil {
			return page{}, err
		}
		return p.dataPage(h, p.data)
	}
	return page{}, p.skip(h.compressed)
}

// header reads the header of the next page. Most are short.
func (p *pager) header() (pageHeader, error) {
	for n := int64(firstHeader); ; n = min(n*8, maxPageHeader) {
		b, err := p.peek(min(n, p.last-p.at))
		if err != nil {
			return pageHeader{}, err
		}
		h, err := parsePageHeader(b)
		if err == errCutOff && int64(len(b)) == n && n < maxPageHeader {
			continue
		}
		if err == nil {
			err = p.skip(h.size)
		}
		return h, err
	}
}

// peek returns the next n bytes, valid until the next call. What the buffer has no room for is in memory of its own.
func (p *pager) peek(n int64) (b []byte, err error) {
	if n <= int64(p.in.Size()) {
		b, err = p.in.Peek(int(n))
		return b, cut(err)
	}
	b = make([]byte, n)
	return b, p.shared.in.readFull(b, p.at)
}

// skip passes over n bytes. Those that are not in the buffer are not read.
func (p *pager) skip(n int64) error {
	p.at += n
	if n > int64(p.in.Buffered()) {
		p.in.Reset(io.NewSectionReader(p.shared.in, p.at, max(0, p.last-p.at)))
		return nil
	}
	_, err := p.in.Discard(int(n))
	return err
}

func (p *pager) fill(b []byte) error {
	p.at += int64(len(b))
	_, err := io.ReadFull(p.in, b)
	return cut(err)
}

func (p *pager) check(h pageHeader) error {
	known := h.isData() || h.kind == pageDictionary
	values := min(p.left, maxPageValues)
	if h.kind == pageDictionary {
		values = h.uncompressed / max(1, p.leaf.plainSize())
	}
	levels := h.defSize + h.repSize
	switch {
	case known && (h.headers != 1 || h.header != h.kind):
		return errThrift
	case h.compressed < 0 || h.compressed > p.last-p.at:
		return fmt.Errorf("it would have %d bytes, and its column has %d more", h.compressed, p.last-p.at)
	case h.compressed > maxPage || h.uncompressed > maxPage:
		return fmt.Errorf("it would have %d bytes, %d unpacked: there can be %d", h.compressed, h.uncompressed, maxPage)
	case h.uncompressed < 0 || h.values < 0 || h.values > values:
		return fmt.Errorf("it would have %d values in %d bytes: there can be %d", h.values, h.uncompressed, values)
	case h.defSize < 0 || h.repSize < 0 || levels > min(h.compressed, h.uncompressed):
		return fmt.Errorf("its levels would have %d and %d bytes", h.defSize, h.repSize)
	}
	return nil
}

// unpack reads the bytes of a page into dst, which has its size.
func (p *pager) unpack(h pageHeader, dst []byte) error {
	if p.chunk.codec == codecNone || h.valuesUncompressed && !p.shared.alwaysCompressed {
		if h.compressed != h.uncompressed {
			return errSize
		}
		if err := p.fill(dst); err != nil {
			return err
		}
		return h.checksum(dst)
	}
	packed, err := p.shared.room(p.shared.packed, h.compressed)
	if err != nil {
		return err
	}
	p.shared.packed = packed
	if err := p.fill(packed); err != nil {
		return err
	}
	if err := h.checksum(packed); err != nil {
		return err
	}
	levels := copy(dst, packed[:h.defSize+h.repSize]) // those of a page V2 are never packed
	return decompress(p.chunk.codec, dst[levels:], packed[levels:])
}

// checksum compares a page as it is in the file with what its header says.
func (h *pageHeader) checksum(page []byte) error {
	if h.hasCRC && crc32.ChecksumIEEE(page) != h.crc {
		return errors.New("wrong checksum")
	}
	return nil
}

// readDictionary reads the dictionary of the chunk. Its values are decoded once, and their bytes are those of the page.
func (p *pager) readDictionary(h pageHeader) error {
	switch {
	case h.encoding != encodingPlain && h.encoding != encodingPlainDictionary || p.leaf.physical == physicalBoolean:
		return unsupported("a dictionary of %s with the encoding %s", strings.ToUpper(physicalNames[p.leaf.physical]), encodingName(h.encoding))
	case p.dictionary != nil:
		return errors.New("second dictionary of the chunk")
	}
	p.dictionaryCost = h.uncompressed + h.values*valueSize
	if err := p.shared.hold(p.dictionaryCost); err != nil {
		return err
	}
	b := make([]byte, h.uncompressed)
	if err := p.unpack(h, b); err != nil {
		return err
	}
	p.dictionary = make([]value, h.values)
	for i := range p.dictionary {
		p.dictionary[i].def = int16(p.leaf.def)
	}
	values := page{plain: b}
	return values.takePlain(p.dictionary, p.leaf)
}
