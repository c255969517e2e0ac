// Package index finds the one page of a block that can hold a key.
//
// A [Builder] encodes the index of a block from the separators and locations of its pages, and [Index] searches it in
// memory. A page with many records is a group of its own, several with few records are one. The index finds the group of a
// key by the separator before its first page, and in a group of several pages the page by the hash of the key. The first
// eight bytes of a separator behind the prefix of all keys, as a number, are its fence. From the fence of a key, a coder
// and a radix table guess the group.
package index

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"sort"
	"unsafe"

	"sequins/blocks/internal/decode"
)

// MaxLength is the longest page in the file (19 bits of its location).
const MaxLength = 1<<19 - 1

// maxOffset bounds where a page may end (40 bits of a location): 1 TiB.
const maxOffset = 1<<40 - 1

// A Location packs where a page lies: offset:40 length:19 packed:1 separatorLength:4, from the high
// bits down. packed says that the page's payload is compressed, which a reader of the map would
// otherwise have to look for at the page's end. The separator length is that of the part behind the
// block's common prefix; longSeparator stands for one that goes on in the tails. That of a group of several pages has
// length 0 and, in place of an offset, where in the runs its own begins.
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

func (l Location) end() int64 { return l.Offset() + int64(l.Length()) }

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
// hold up the whole thread. 16 bytes a group, 4 more if some have several pages, 4 for each bucket of the radix table, the
// runs and the tails.
//
// A lookup should touch one place of the entries and nothing else that is not in the second cache anyway. So a
// bucket is many groups wide, and in it the group is guessed from the key: even where keys are random, the guess is
// almost never off by more than a group or two.
type Index struct {
	prefix   []byte
	entries  []entry  // one a group, and behind them sentinels, which are no groups
	pages    []uint32 // the first page of each group, and behind them how many pages there are; nil if each group has one
	runs     []byte   // of the groups of several pages, and runSlack zeros
	tailEnds []uint32 // empty where no separator is longer than eight bytes behind the prefix
	tails    []byte

	// radix[b] is the first group but group 0 whose code is at least b<<shift. See Guess.
	radix  []uint32
	coder  *coder
	shift  uint
	tables tables // where entries, pages, runs and radix lie
}

// entry is what a lookup needs to know of a group, in one cache line.
type entry struct {
	fence    uint64
	location Location
}

const (
	window    = 5      // fences that are compared around a guess
	spread    = 32     // groups to a bucket, about, where groups are guessed
	sentinels = window // so that there is a window in any case
)

// Pages is how many pages the block has.
func (x *Index) Pages() int {
	if x.pages == nil {
		return x.groups()
	}
	return int(x.pages[x.groups()])
}

func (x *Index) groups() int { return len(x.entries) - sentinels }

// Parse decodes and checks an index. No page is shorter than shortest bytes, and none ends behind dataEnd in the file.
func Parse(b []byte, shortest int, dataEnd int64) (*Index, error) {
	d := decode.New(b)
	groups := d.Count(16)
	prefix, runs := int(d.U32()), int(d.U32())
	x := &Index{prefix: bytes.Clone(d.Bytes(prefix))}
	fences := make([]uint64, groups)
	for i := range fences {
		fences[i] = d.U64()
	}
	locations := make([]Location, groups)
	for i := range locations {
		locations[i] = Location(d.U64())
	}
	encoded := d.Bytes(runs)
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
	if err := x.check(fences, locations); err != nil {
		return nil, err
	}
	if runs > 0 {
		x.pages, x.runs = table[uint32](&x.tables, groups+1), table[byte](&x.tables, runs+runSlack)
		copy(x.runs, encoded)
	}
	if err := x.place(locations, runs, shortest, dataEnd); err != nil {
		return nil, errors.Join(err, x.Free())
	}
	x.build(fences, locations)
	return x, nil
}

// check makes sure that the separators ascend and lead to no tail that is not there.
func (x *Index) check(fences []uint64, locations []Location) error {
	for i, l := range locations {
		if i > 0 && fences[i] < fences[i-1] || i == 0 && (fences[0] != 0 || l.separator() != 0) {
			return fmt.Errorf("group %d: separators out of order: %w", i, decode.ErrMalformed)
		}
		if l.separator() > longSeparator || l.separator() == longSeparator && len(x.tailEnds) != len(locations) {
			return fmt.Errorf("group %d: no tail: %w", i, decode.ErrMalformed)
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

// place numbers the pages, and makes sure that none leads outside the file and that the groups have all runs, in their order.
func (x *Index) place(locations []Location, runs, shortest int, dataEnd int64) error {
	at, page, end := 0, 0, int64(0)
	for i, l := range locations {
		pages := 1
		if l.Length() == 0 {
			r := run(x.runs[at:runs])
			if l.Offset() != int64(at) || !r.valid() {
				return fmt.Errorf("group %d: no run: %w", i, decode.ErrMalformed)
			}
			pages, at = r.pages(), at+r.size()
		}
		for n := range pages {
			p := x.location(l, n)
			if p.Offset() < end || p.Length() < shortest || p.end() > dataEnd {
				return fmt.Errorf("page %d: %w", page+n, decode.ErrMalformed)
			}
			end = p.end()
		}
		page += pages
		if x.pages != nil {
			x.pages[i+1] = uint32(page)
		}
	}
	if at != runs || page > math.MaxUint32 {
		return fmt.Errorf("runs: %w", decode.ErrMalformed)
	}
	return nil
}

// build lays out the entries and the radix table. Where keys are so unevenly spread that too many guesses fail, the
// table has one or two buckets a group, so that there is little left to search.
func (x *Index) build(fences []uint64, locations []Location) {
	x.coder = &oneCode
	if len(fences) > fewGroups {
		x.coder = newCoder(fences[1:])
	}
	x.tabulate(fences, spread)
	if x.guessed(fences) < len(fences)/8*7 {
		x.tabulate(fences, 1)
	}
	radix := x.radix
	x.entries, x.radix = table[entry](&x.tables, len(fences)+sentinels), table[uint32](&x.tables, len(radix))
	copy(x.radix, radix)
	for i, f := range fences {
		x.entries[i] = entry{f, locations[i]}
	}
	for i := len(fences); i < len(x.entries); i++ {
		x.entries[i].fence = ^uint64(0)
	}
}

// fewGroups is up to how many groups are searched through without a coder, which takes 16 KiB.
const fewGroups = 32

var oneCode coder

// tabulate makes the radix table, with buckets that are on average between half of width and twice width groups wide.
func (x *Index) tabulate(fences []uint64, width int) {
	buckets := uint(len(fences) / width)
	x.shift = uint(max(0, bits.Len64(x.coder.max)-bits.Len(buckets)))
	x.radix = make([]uint32, x.coder.max>>x.shift+2)
	bucket := 0
	for group := 1; group < len(fences); group++ {
		for last := int(x.coder.code(fences[group]) >> x.shift); bucket <= last; bucket++ {
			x.radix[bucket] = uint32(group)
		}
	}
	for ; bucket < len(x.radix); bucket++ {
		x.radix[bucket] = uint32(max(len(fences), 1))
	}
}

// guessed returns how many groups are where Guess leads for their own fences.
func (x *Index) guessed(fences []uint64) (n int) {
	for group, f := range fences {
		if near := x.Guess(f); group >= near && group < near+window-1 {
			n++
		}
	}
	return n
}

// Guess returns the first of the window-1 groups among which that of a key with fence f is likely to be.
func (x *Index) Guess(f uint64) (near int) {
	code := x.coder.code(f)
	lo, hi := x.bucket(code)
	shift := x.shift & 63
	return max(lo-2+int(uint64(hi-lo)*(code&(1<<shift-1))>>shift), 0)
}

// bucket returns between which bounds the group of a fence with this code is: the first greater fence is that of a
// group from lo to hi-1 or, if there is none, the group is hi-1.
func (x *Index) bucket(code uint64) (lo, hi int) {
	ends := (*[2]uint32)(unsafe.Pointer(&x.radix[code>>(x.shift&63)])) // the last bucket of the table is no code's
	return int(ends[0]), int(ends[1])
}

// Prefix is what all keys of the block begin with.
func (x *Index) Prefix() []byte { return x.prefix }

// Location returns where page i is. If some groups have several pages, it searches for the group.
func (x *Index) Location(i int) Location {
	if x.pages == nil {
		return x.entries[i].location
	}
	group := sort.Search(x.groups(), func(g int) bool { return int(x.pages[g+1]) > i })
	return x.location(x.entries[group].location, i-int(x.pages[group]))
}

// location is that of page i of the group that is at l.
func (x *Index) location(l Location, i int) Location {
	if l.Length() == 0 {
		return run(x.runs[l.Offset():]).location(i)
	}
	return l
}

// Bounds returns the first page of a group and the one behind its last.
func (x *Index) Bounds(group int) (first, end int) {
	if x.pages == nil {
		return group, group + 1
	}
	return int(x.pages[group]), int(x.pages[group+1])
}

// Page returns the only page of a group that can hold a key with this hash, and where it is; -1 if none can.
func (x *Index) Page(group int, hash uint64) (page int, l Location) {
	if page, l = group, x.entries[group].location; x.pages != nil {
		page, l = x.pageOf(group, hash)
	}
	return // without values, which would be too much to be inlined
}

func (x *Index) pageOf(group int, hash uint64) (int, Location) {
	l, i := x.entries[group].location, 0
	if l.Length() == 0 {
		if i = run(x.runs[l.Offset():]).find(hash); i < 0 {
			return -1, 0
		}
	}
	return int(x.pages[group]) + i, x.location(l, i)
}

// CutPrefix returns what follows the block's prefix.
func (x *Index) CutPrefix(key []byte) (rest []byte, ok bool) {
	if len(x.prefix) == 0 {
		return key, true
	}
	return bytes.CutPrefix(key, x.prefix)
}

// Find returns the only group that can hold key, the last whose separator is not greater, and 0 if there
// are none. rest is key behind the block's prefix.
func (x *Index) Find(rest []byte) (group int) {
	return x.FindNear(rest, x.Guess(Fence(rest)))
}

// Touch reads what FindNear compares first, to bring it into the processor's cache. What it returns has no meaning.
func (x *Index) Touch(near int) byte {
	at := x.entries[near:][:window]
	return byte(at[0].fence ^ at[window-1].fence)
}

// FindNear is Find with what Guess has returned for the fence of rest.
func (x *Index) FindNear(rest []byte, near int) (group int) {
	f := Fence(rest)
	// Comparisons whose results are added and not branched on, so that the processor need not guess where it
	// will go on.
	fences, n := (*[window]entry)(unsafe.Pointer(&x.entries[near])), 0
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
	group = min(near+n, x.groups()) - 1
	if n == 0 || n == window {
		group = x.search(f)
	}
	if x.entries[group].fence == f && group > 0 && x.compare(group, rest) > 0 {
		return x.findTie(rest, group)
	}
	return group
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

// compare compares the separator of a group with rest, which agrees with it in the fence.
func (x *Index) compare(group int, rest []byte) int {
	n := x.entries[group].location.separator()
	if n < longSeparator {
		return min(n, 9) - min(len(rest), 9) // one is a prefix of the other, but for zeros behind it
	}
	if len(rest) < 8 {
		return 1
	}
	start := uint32(0)
	if group > 0 {
		start = x.tailEnds[group-1]
	}
	return bytes.Compare(x.tails[start:x.tailEnds[group]], rest[8:])
}

// Memory is what the index takes, on the heap and beside it, in bytes.
func (x *Index) Memory() int64 {
	n := int64(len(x.prefix) + 16*len(x.entries) + 4*len(x.pages) + len(x.runs) + 4*len(x.tailEnds) + len(x.tails) + 4*len(x.radix))
	if x.coder != &oneCode {
		n += int64(unsafe.Sizeof(*x.coder))
	}
	return n
}

// Free returns the memory of the index outside the heap. It must not be used any more.
func (x *Index) Free() error { return x.tables.free() }
