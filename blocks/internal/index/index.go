// Package index finds the one page of a block that can hold a key.
//
// A [Builder] encodes the index of a block from the separators and locations of its pages, and [Index] searches it in
// memory. The first eight bytes of a separator behind the prefix of all keys, as a number, are its fence. From the fence of
// a key, a coder and a radix table guess the page.
package index

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"sort"
	"unsafe"

	"sequins/blocks/internal/decode"
)

// MaxLength is the longest page in the file (19 bits of its location).
const MaxLength = 1<<19 - 1

// maxOffset bounds where a page may begin (40 bits of its location): 1 TiB.
const maxOffset = 1<<40 - 1

// A Location packs where a page lies: offset:40 length:19 packed:1 separatorLength:4, from the high
// bits down. packed says that the page's payload is compressed, which a reader of the map would
// otherwise have to look for at the page's end. The separator length is that of the part behind the
// block's common prefix; longSeparator stands for one that goes on in the tails.
type Location uint64

const longSeparator = 9

func makeLocation(offset int64, length int, packed bool) Location {
	l := Location(offset)<<24 | Location(length)<<5
	if packed {
		l |= 1 << 4
	}
	return l
}

// Offset is where in the file the page begins.
func (l Location) Offset() int64 { return int64(l >> 24) }

// Length is the length of the page in the file, in bytes.
func (l Location) Length() int { return int(l >> 5 & MaxLength) }

// Packed reports whether the page is compressed.
func (l Location) Packed() bool { return l>>4&1 != 0 }

func (l Location) separator() int { return int(l & 0xf) }

// Fence is the first eight bytes of s, filled up with zeros, as a number that orders like them.
func Fence(s []byte) uint64 {
	if len(s) >= 8 {
		return binary.BigEndian.Uint64(s)
	}
	var b [8]byte
	copy(b[:], s)
	return binary.BigEndian.Uint64(b[:])
}

// Separator returns the shortest prefix of next that is greater than last. last < next.
func Separator(last, next []byte) []byte {
	return next[:commonPrefix(last, next)+1]
}

func commonPrefix(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// Index finds the page of a key. It is in memory of its own: a page fault in a map of the file would
// hold up the whole thread. 16 bytes a page, 4 more for each bucket of the radix table, and the tails.
//
// A lookup should touch one place of the entries and nothing else that is not in the second cache anyway. So a
// bucket is many pages wide, and in it the page is guessed from the key: even where keys are random, the guess is
// almost never off by more than a page or two.
type Index struct {
	prefix   []byte
	entries  []pageEntry // one a page, and behind them sentinels, which are no pages
	tailEnds []uint32    // empty where no separator is longer than eight bytes behind the prefix
	tails    []byte

	// radix[b] is the first page but page 0 whose code is at least b<<shift. See Guess.
	radix  []uint32
	coder  *coder
	shift  uint
	tables tables // where entries and radix lie
}

// pageEntry is what a lookup needs to know of a page, in one cache line.
type pageEntry struct {
	fence    uint64
	location Location
}

const (
	window    = 5      // fences that are compared around a guess
	spread    = 32     // pages to a bucket, about, where pages are guessed
	sentinels = window // so that there is a window in any case
)

// Pages is how many pages the block has.
func (x *Index) Pages() int { return len(x.entries) - sentinels }

// Parse decodes and checks an index. No page is shorter than shortest bytes, and none ends behind dataEnd in the file.
func Parse(b []byte, shortest int, dataEnd int64) (*Index, error) {
	d := decode.New(b)
	pages := d.Count(16)
	x := &Index{prefix: bytes.Clone(d.Bytes(int(d.U32())))}
	fences := make([]uint64, pages)
	for i := range fences {
		fences[i] = d.U64()
	}
	locations := make([]Location, pages)
	for i := range locations {
		locations[i] = Location(d.U64())
	}
	if n := d.Count(4); n > 0 {
		x.tailEnds = make([]uint32, n)
		for i := range x.tailEnds {
			x.tailEnds[i] = d.U32()
		}
		x.tails = bytes.Clone(d.Rest())
	}
	if d.Err() != nil || d.Len() > 0 {
		return nil, decode.ErrMalformed
	}
	if err := x.check(fences, locations, shortest, dataEnd); err != nil {
		return nil, err
	}
	x.build(fences, locations)
	return x, nil
}

// check makes sure that no number of the index leads outside the file or the index itself.
func (x *Index) check(fences []uint64, locations []Location, shortest int, dataEnd int64) error {
	var end int64
	for i, l := range locations {
		if l.Offset() < end || l.Length() < shortest || l.Offset()+int64(l.Length()) > dataEnd || l.separator() > longSeparator {
			return fmt.Errorf("page %d: %w", i, decode.ErrMalformed)
		}
		end = l.Offset() + int64(l.Length())
		if i > 0 && fences[i] < fences[i-1] || i == 0 && (fences[0] != 0 || l.separator() != 0) {
			return fmt.Errorf("page %d: separators out of order: %w", i, decode.ErrMalformed)
		}
		if l.separator() == longSeparator && len(x.tailEnds) != len(locations) {
			return fmt.Errorf("page %d: no tail: %w", i, decode.ErrMalformed)
		}
	}
	var last uint32
	for i, e := range x.tailEnds {
		if e < last || int(e) > len(x.tails) {
			return fmt.Errorf("tail %d: %w", i, decode.ErrMalformed)
		}
		last = e
	}
	if len(x.tailEnds) > 0 && (len(x.tailEnds) != len(locations) || int(last) != len(x.tails)) {
		return fmt.Errorf("tails: %w", decode.ErrMalformed)
	}
	return nil
}

// build lays out the entries and the radix table. Where keys are so unevenly spread that too many guesses fail, the
// table has one or two buckets a page, so that there is little left to search.
func (x *Index) build(fences []uint64, locations []Location) {
	x.coder = &oneCode
	if len(fences) > fewPages {
		x.coder = newCoder(fences[1:])
	}
	x.tabulate(fences, spread)
	if x.guessed(fences) < len(fences)/8*7 {
		x.tabulate(fences, 1)
	}
	radix := x.radix
	x.entries, x.radix = x.tables.make(len(fences)+sentinels, len(radix))
	copy(x.radix, radix)
	for i, f := range fences {
		x.entries[i] = pageEntry{f, locations[i]}
	}
	for i := len(fences); i < len(x.entries); i++ {
		x.entries[i].fence = ^uint64(0)
	}
}

// fewPages is up to how many pages are searched through without a coder, which takes 16 KiB.
const fewPages = 32

var oneCode coder

// tabulate makes the radix table, with buckets that are on average between half of width and twice width pages wide.
func (x *Index) tabulate(fences []uint64, width int) {
	pages := uint(len(fences) / width)
	x.shift = uint(max(0, bits.Len64(x.coder.max)-bits.Len(pages)))
	x.radix = make([]uint32, x.coder.max>>x.shift+2)
	bucket := 0
	for page := 1; page < len(fences); page++ {
		for last := int(x.coder.code(fences[page]) >> x.shift); bucket <= last; bucket++ {
			x.radix[bucket] = uint32(page)
		}
	}
	for ; bucket < len(x.radix); bucket++ {
		x.radix[bucket] = uint32(max(len(fences), 1))
	}
}

// guessed returns how many pages are where Guess leads for their own fences.
func (x *Index) guessed(fences []uint64) (n int) {
	for page, f := range fences {
		if near := x.Guess(f); page >= near && page < near+window-1 {
			n++
		}
	}
	return n
}

// Guess returns the first of the window-1 pages among which that of a key with fence f is likely to be.
func (x *Index) Guess(f uint64) (near int) {
	code := x.coder.code(f)
	lo, hi := x.bucket(code)
	shift := x.shift & 63
	return max(lo-2+int(uint64(hi-lo)*(code&(1<<shift-1))>>shift), 0)
}

// bucket returns between which bounds the page of a fence with this code is: the first greater fence is that of a
// page from lo to hi-1 or, if there is none, the page is hi-1.
func (x *Index) bucket(code uint64) (lo, hi int) {
	ends := (*[2]uint32)(unsafe.Pointer(&x.radix[code>>(x.shift&63)])) // the last bucket of the table is no code's
	return int(ends[0]), int(ends[1])
}

// Prefix is what all keys of the block begin with.
func (x *Index) Prefix() []byte { return x.prefix }

// Location returns where page i is.
func (x *Index) Location(i int) Location { return x.entries[i].location }

// CutPrefix returns what follows the block's prefix.
func (x *Index) CutPrefix(key []byte) (rest []byte, ok bool) {
	if len(x.prefix) == 0 {
		return key, true
	}
	return bytes.CutPrefix(key, x.prefix)
}

// Find returns the only page that can hold key, the last whose separator is not greater, and 0 if there
// are none. rest is key behind the block's prefix.
func (x *Index) Find(rest []byte) int {
	return x.FindNear(rest, x.Guess(Fence(rest)))
}

// Touch reads what FindNear compares first, to bring it into the processor's cache. What it returns has no meaning.
func (x *Index) Touch(near int) byte {
	at := x.entries[near:][:window]
	return byte(at[0].fence ^ at[window-1].fence)
}

// FindNear is Find with what Guess has returned for the fence of rest.
func (x *Index) FindNear(rest []byte, near int) int {
	f := Fence(rest)
	// Comparisons whose results are added and not branched on, so that the processor need not guess where it
	// will go on.
	fences, n := (*[window]pageEntry)(unsafe.Pointer(&x.entries[near])), 0
	if fences[0].fence <= f {
		n++
	}
	if fences[1].fence <= f {
		n++
	}
	if fences[2].fence <= f {
		n++
	}
	if fences[3].fence <= f {
		n++
	}
	if fences[4].fence <= f {
		n++
	}
	page := min(near+n, x.Pages()) - 1
	if n == 0 || n == window {
		page = x.search(f)
	}
	if x.entries[page].fence == f && page > 0 && x.compare(page, rest) > 0 {
		return x.findTie(rest, page)
	}
	return page
}

// search is Find where the guess was wrong, for a key that does not tie.
func (x *Index) search(f uint64) int {
	lo, hi := x.bucket(x.coder.code(f))
	return lo - 1 + sort.Search(hi-lo, func(i int) bool { return x.entries[lo+i].fence > f })
}

// findTie settles between separators whose first eight bytes are those of rest. last is the last
// of them.
func (x *Index) findTie(rest []byte, last int) int {
	first := sort.Search(last, func(i int) bool { return x.entries[i].fence >= x.entries[last].fence })
	first = max(first, 1)
	n := sort.Search(last-first+1, func(i int) bool { return x.compare(first+i, rest) > 0 })
	return first + n - 1
}

// compare compares the separator of a page with rest, which agrees with it in the fence.
func (x *Index) compare(page int, rest []byte) int {
	n := x.entries[page].location.separator()
	if n < longSeparator {
		return min(n, 9) - min(len(rest), 9) // one is a prefix of the other, but for zeros behind it
	}
	if len(rest) < 8 {
		return 1
	}
	start := uint32(0)
	if page > 0 {
		start = x.tailEnds[page-1]
	}
	return bytes.Compare(x.tails[start:x.tailEnds[page]], rest[8:])
}

// Memory is what the index takes, on the heap and beside it, in bytes.
func (x *Index) Memory() int64 {
	n := int64(len(x.prefix) + 16*len(x.entries) + 4*len(x.tailEnds) + len(x.tails) + 4*len(x.radix))
	if x.coder != &oneCode {
		n += int64(unsafe.Sizeof(*x.coder))
	}
	return n
}

// Free returns the memory of the index outside the heap. It must not be used any more.
func (x *Index) Free() error { return x.tables.free() }
