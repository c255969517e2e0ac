package parquet

import (
	"fmt"
	"io"
	"slices"

	"github.com/parquet-go/parquet-go/format"
)

// What one page may be. The library allocates what a page's header says before it looks at the page, so
// that four bytes of damage could cost gigabytes.
const (
	// maxPage is how many bytes a page may have, packed or not. Writers make pages of a mebibyte, or of
	// one value.
	maxPage = 256 << 20
	// maxPageValues is how many values a page may have. Writers stop at some ten thousand, or when the
	// page is full, which a page of nulls never is.
	maxPageValues = 64 << 20
	// maxPageHeader is how many bytes a page's header may have. There can be two values in it, the least
	// and the greatest.
	maxPageHeader = 16 << 20
)

// A guard is a column chunk as the library reads it: forward, page after page. It looks at the header of
// each page before the library sees it.
type guard struct {
	r      io.ReaderAt
	next   int64 // where the next page's header begins
	end    int64 // of the chunk
	values int64 // of the chunk; no page has more

	// The beginning of the next page's header, at next, if it was at the end of what was read last.
	kept []byte
}

// newGuard returns the guard of a chunk in a file of size bytes.
func newGuard(r io.ReaderAt, chunk *format.ColumnMetaData, size int64) (*guard, error) {
	start := chunk.DataPageOffset
	if chunk.DictionaryPageOffset != 0 {
		start = chunk.DictionaryPageOffset
	}
	if start < 0 || chunk.TotalCompressedSize < 0 || chunk.TotalCompressedSize > size-start {
		return nil, fmt.Errorf("a column would have %d bytes at %d of %d", chunk.TotalCompressedSize, start, size)
	}
	return &guard{r: r, next: start, end: start + chunk.TotalCompressedSize, values: chunk.NumValues}, nil
}

// ReadAt ends before a header that is not all there: the next call begins with it.
func (g *guard) ReadAt(p []byte, off int64) (n int, err error) {
	if len(g.kept) > 0 && off == g.next {
		n = copy(p, g.kept)
	}
	g.kept = nil
	if n < len(p) {
		var m int
		m, err = g.r.ReadAt(p[n:], off+int64(n))
		n += m
	}
	for off <= g.next && g.next < min(off+int64(n), g.end) {
		at := int(g.next - off)
		ok, perr := g.page(p[at:n], at == 0)
		if perr != nil {
			return 0, perr
		}
		if !ok {
			g.kept = slices.Clone(p[at:n])
			return at, nil
		}
	}
	return n, err
}

// page looks at the page that begins with b, and goes on to the next one. ok is false if b ends within its
// header, unless whole is set: then what is missing is read.
func (g *guard) page(b []byte, whole bool) (ok bool, err error) {
	h, err := parsePageHeader(b)
	if err == errCutOff && int64(len(b)) < g.end-g.next {
		if !whole {
			return false, nil
		}
		b = make([]byte, min(maxPageHeader, g.end-g.next))
		if _, err := g.r.ReadAt(b, g.next); err != nil && err != io.EOF {
			return false, err
		}
		h, err = parsePageHeader(b)
	}
	if err == nil {
		err = g.check(h)
	}
	if err != nil {
		return false, fmt.Errorf("the page at %d: %w", g.next, err)
	}
	g.next += h.size + h.compressed
	return true, nil
}

func (g *guard) check(h pageHeader) error {
	values := min(g.values, maxPageValues)
	if h.dictionary {
		values = h.uncompressed // each has a byte at least
	}
	switch {
	case h.compressed < 0 || h.compressed > g.end-g.next-h.size:
		return fmt.Errorf("it would have %d bytes, and its column has %d more", h.compressed, g.end-g.next-h.size)
	case h.compressed > maxPage || h.uncompressed > maxPage:
		return fmt.Errorf("it would have %d bytes, %d unpacked: there can be %d", h.compressed, h.uncompressed, maxPage)
	case h.uncompressed < 0 || h.values < 0 || h.values > values:
		return fmt.Errorf("it would have %d values in %d bytes: there can be %d", h.values, h.uncompressed, values)
	}
	return nil
}
