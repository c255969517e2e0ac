package index

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// run is the encoding of a group of several pages, which have few records each and follow each other without a gap. Of the
// group the index has one fence; the page of a key is that of the record with the key's fingerprint. The seed is such that
// different pages have no fingerprint in common. A page ends where the next begins; bound i is where page i begins:
//
//	base:u64 starts:u32 average:u32 seed:u8 records:u8 width:u8
//	fingerprint:u8[records] { rest<<1 | packed } of width bits for each page and the last one's end
//	bound i = base + i*average + rest
type run []byte

const (
	runHead    = 8 + 4 + 4 + 3
	runRecords = 32 // at most, so that starts has a bit for each
	runSlack   = 8  // bytes that may be read behind a run
	maxWidth   = 32 // of a rest
	fewRecords = 4  // in a page of a run; one with more takes less in a group of its own
	seeds      = 256
)

func (r run) starts() uint32 { return binary.LittleEndian.Uint32(r[8:]) } // bit i: record i is the first of its page
func (r run) seed() uint8    { return r[16] }
func (r run) records() int   { return int(r[17]) }
func (r run) width() int     { return int(r[18]) }
func (r run) pages() int     { return bits.OnesCount32(r.starts()) }

// size is the length of the run in bytes.
func (r run) size() int { return runHead + r.records() + ((r.pages()+1)*r.width()+7)/8 }

// valid reports whether r begins with a run.
func (r run) valid() bool {
	return len(r) >= runHead && r.records() <= runRecords && r.width() <= maxWidth && r.starts()&1 != 0 &&
		uint64(r.starts())>>r.records() == 0 && len(r) >= r.size()
}

// fingerprint is a byte of a key's hash that another seed makes another one.
func fingerprint(hash uint64, seed uint8) byte {
	return byte(hash * (0x9e3779b97f4a7c15 * (2*uint64(seed) + 1)) >> 56)
}

// find returns the page of the record with this hash, or -1 if there is none.
func (r run) find(hash uint64) (page int) {
	const low, high = 0x0101010101010101, 0x8080808080808080
	pattern := low * uint64(fingerprint(hash, r.seed()))
	for i := 0; i < r.records(); i += 8 {
		x := binary.LittleEndian.Uint64(r[runHead+i:]) ^ pattern
		if equal := (x - low) &^ x & high; equal != 0 { // the lowest bit of which is right
			if i += bits.TrailingZeros64(equal) / 8; i < r.records() {
				return bits.OnesCount32(r.starts()&(2<<i-1)) - 1
			}
		}
	}
	return -1
}

// bound returns where page i begins, and whether it is packed.
func (r run) bound(i int) (offset int64, packed bool) {
	le := binary.LittleEndian
	at := i * r.width()
	v := le.Uint64(r[runHead+r.records()+at/8:]) >> (at % 8) & (1<<r.width() - 1)
	return int64(le.Uint64(r)) + int64(i)*int64(le.Uint32(r[12:])) + int64(v>>1), v&1 != 0
}

// location is that of page i.
func (r run) location(i int) Location {
	start, packed := r.bound(i)
	end, _ := r.bound(i + 1)
	return makeLocation(start, int(end-start), packed)
}

// group is the pages that a [Builder] has added since the last group.
type group struct {
	pages  []Location
	hashes []uint64 // of the records; none if the page has many
	starts uint32   // as in a run
	seed   uint8
}

// add adds a page to the group, unless they cannot be one run.
func (g *group) add(l Location, hashes []uint64) bool {
	if n := len(g.pages); n > 0 && (len(g.hashes) == 0 || len(hashes) == 0 ||
		len(g.hashes)+len(hashes) > runRecords || g.pages[n-1].end() != l.Offset()) {
		return false
	}
	all, starts := append(g.hashes, hashes...), g.starts|1<<len(g.hashes)
	for seed := int(g.seed); seed < seeds; seed++ {
		if separates(uint8(seed), starts, all) {
			*g = group{append(g.pages, l), all, starts, uint8(seed)}
			return true
		}
	}
	return false
}

// separates reports whether no two pages have records of the same fingerprint.
func separates(seed uint8, starts uint32, hashes []uint64) bool {
	var pages [256]uint8 // with a record of this fingerprint, from 1 on
	page := uint8(0)
	for i, h := range hashes {
		page += uint8(starts >> i & 1)
		p := &pages[fingerprint(h, seed)]
		if *p != 0 && *p != page {
			return false
		}
		*p = page
	}
	return true
}

// appendRun appends the run of the group's pages.
func (g *group) appendRun(dst []byte) []byte {
	n := len(g.pages)
	bounds := append(g.pages, makeLocation(g.pages[n-1].end(), 0, false))
	first := bounds[0].Offset()
	average := (bounds[n].Offset() - first) / int64(n)
	rests := make([]int64, n+1)
	for i, l := range bounds {
		rests[i] = l.Offset() - first - int64(i)*average
	}
	least := slices.Min(rests)
	width := bits.Len64(uint64(slices.Max(rests)-least)<<1 | 1)
	le := binary.LittleEndian
	dst = le.AppendUint64(dst, uint64(first+least))
	dst = le.AppendUint32(dst, g.starts)
	dst = le.AppendUint32(dst, uint32(average))
	dst = append(dst, g.seed, byte(len(g.hashes)), byte(width))
	for _, h := range g.hashes {
		dst = append(dst, fingerprint(h, g.seed))
	}
	at := len(dst)
	dst = append(dst, make([]byte, (n+1)*width/8+runSlack+1)...)
	for i, l := range bounds {
		v := uint64(rests[i]-least)<<1 | uint64(l>>4&1)
		b := dst[at+i*width/8:]
		le.PutUint64(b, le.Uint64(b)|v<<(i*width%8))
	}
	return dst[:at+((n+1)*width+7)/8]
}
