package blocks

import (
	"bytes"
	"io"
	"sort"

	"sequins/blocks/internal/index"
)

// Iterator walks over the records of a block in ascending order of their keys. It is for one
// goroutine. It reads the file in spans that grow up to 1 MiB, and not through the map, so that a
// walk over everything neither faults nor counts as use of the pages.
type Iterator struct {
	r       *Reader
	end     []byte // first key that is not given any more; nil for none
	span    []byte // part of the file from spanAt on
	spanAt  int64
	want    int // length of the next span
	most    int // which want grows up to
	spans   spanReader
	next    int    // the next page
	payload []byte // of the current page
	page    page
	record  int
	scratch Scratch
	key     []byte
	value   Value
	err     error
}

const (
	minSpan = 16 << 10
	maxSpan = 1 << 20
)

// Iter walks over the keys from start up to, not including, end. A nil end means all that follow.
func (r *Reader) Iter(start, end []byte) *Iterator {
	return r.IterWithin(start, end, maxSpan)
}

// IterWithin is Iter with spans of up to size bytes, or of one page if that is larger. An iterator takes about twice
// as much memory.
func (r *Reader) IterWithin(start, end []byte, size int) *Iterator {
	it := &Iterator{r: r, end: end, most: size}
	if r.props.Pages > 0 {
		it.seek(start)
	}
	return it
}

// PrefixEnd is the least key greater than all that begin with prefix; nil if there is none.
func PrefixEnd(prefix []byte) []byte {
	for n := len(prefix); n > 0; n-- {
		if prefix[n-1] < 0xff {
			end := bytes.Clone(prefix[:n])
			end[n-1]++
			return end
		}
	}
	return nil
}

// seek stands before the first record whose key is at least start.
func (it *Iterator) seek(start []byte) {
	prefix := it.r.index.Prefix()
	switch {
	case bytes.Compare(start, prefix) <= 0:
		it.next = 0
	case bytes.HasPrefix(start, prefix):
		it.next = it.lastUpTo(start, it.r.index.Find(start[len(prefix):]))
	default:
		it.next = it.r.props.Pages
		return
	}
	it.want = min(minSpan, it.most)
	if !it.load() {
		return
	}
	if it.value.large != nil {
		if bytes.Compare(it.key, start) < 0 {
			it.value = Value{}
		}
		return
	}
	n, err := it.page.search(start)
	if err != nil {
		it.fail(err)
		return
	}
	it.record = n
}

// lastUpTo returns the last page of a group that begins with start or a lesser key, and the first page if none does. In a group
// of several pages it reads up to five of them, one at a time: the index knows their keys by hashes alone.
func (it *Iterator) lastUpTo(start []byte, group int) int {
	first, end := it.r.index.Bounds(group)
	n := sort.Search(end-first-1, func(i int) bool {
		if it.next = first + 1 + i; !it.load() {
			return true
		}
		key, _, err := it.page.record(0) // a large value's page is the first of its group, as chunks lie before it
		if err != nil {
			it.fail(err)
		}
		return bytes.Compare(key, start) > 0
	})
	return first + n
}

// Next moves to the next record; false at the end or at an error, which Err tells.
func (it *Iterator) Next() bool {
	for it.err == nil {
		if it.value.large != nil && it.record == 0 { // loaded, not yet given
			it.record = 1
			return it.inRange()
		}
		it.value = Value{}
		if it.record < it.page.len() {
			k, v, err := it.page.record(it.record)
			if err != nil {
				it.fail(err)
				return false
			}
			it.record++
			it.key, it.value = k, Value{small: v}
			return it.inRange()
		}
		if !it.load() {
			return false
		}
	}
	return false
}

func (it *Iterator) inRange() bool {
	if it.end == nil || bytes.Compare(it.key, it.end) < 0 {
		return true
	}
	it.next, it.page, it.value = it.r.props.Pages, page{}, Value{}
	return false
}

// Key is the current key, valid until Next.
func (it *Iterator) Key() []byte { return it.key }

// Value is the current value, valid until Next.
func (it *Iterator) Value() Value { return it.value }

// Err is nil at a clean end. Damage is ErrCorrupt.
func (it *Iterator) Err() error { return it.err }

func (it *Iterator) fail(err error) {
	i := it.next - 1
	it.err = it.r.corrupt(i, it.r.index.Location(i).Offset(), err)
}

// load makes the next page the current one: its records, or the large value that it names.
func (it *Iterator) load() bool {
	it.page, it.record, it.value = page{}, 0, Value{}
	if it.err != nil || it.next >= it.r.props.Pages {
		return false
	}
	l := it.r.index.Location(it.next)
	it.next++
	stored, err := it.stored(l)
	if err != nil {
		it.err = it.r.broken(it.next-1, l.Offset(), err)
		return false
	}
	if it.payload, err = it.r.unpackPage(it.next-1, stored, &it.scratch); err == nil {
		err = it.parse()
	}
	if err != nil {
		it.fail(err)
	}
	return err == nil
}

func (it *Iterator) parse() (err error) {
	if !isLarge(it.payload) {
		it.page, err = it.r.parsePage(it.next-1, it.payload, &it.scratch)
		return err
	}
	it.key, it.value.large, err = it.r.parseLarge(it.next-1, it.payload)
	return err
}

// stored returns a page as it lies in the file, from the span or a new one.
func (it *Iterator) stored(l index.Location) ([]byte, error) {
	if l.Offset() < it.spanAt || l.Offset()+int64(l.Length()) > it.spanAt+int64(len(it.span)) {
		n := min(int64(max(it.want, l.Length())), it.r.footer.index.offset-l.Offset())
		if n < int64(l.Length()) {
			return nil, io.ErrUnexpectedEOF
		}
		b, err := it.spans.read(it.r, it.span, l.Offset(), int(n))
		if err != nil {
			return nil, err
		}
		it.span, it.spanAt = b, l.Offset()
		it.want = min(2*it.want, it.most)
	}
	start := l.Offset() - it.spanAt
	return it.span[start : start+int64(l.Length())], nil
}

// spanReader reads parts of the file in its order. That of a scrub leaves memory as it finds it.
type spanReader struct {
	pace  func(bytes int) error // nil for none; waits before each read
	scrub bool                  // drop from memory what was not there before
}

func (s *spanReader) read(r *Reader, buf []byte, off int64, n int) ([]byte, error) {
	if s.pace != nil {
		if err := s.pace(n); err != nil {
			return nil, err
		}
	}
	if !s.scrub || r.data == nil {
		return r.read(buf, off, n)
	}
	resident, err := r.file.Resident(off, off+int64(n))
	if err != nil {
		return nil, err
	}
	b, err := r.read(buf, off, n)
	if err == nil && !resident {
		err = r.file.Forget(off, int64(n))
	}
	return b, err
}

// each passes the part of the file between two offsets to f, in pieces.
func (s *spanReader) each(r *Reader, from, to, piece int64, f func(b []byte) error) error {
	var buf []byte
	for off := from; off < to; off += piece {
		var err error
		if buf, err = s.read(r, buf, off, int(min(piece, to-off))); err != nil {
			return r.broken(-1, off, err)
		}
		if err := f(buf); err != nil {
			return err
		}
	}
	return nil
}
