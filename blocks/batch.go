package blocks

import (
	"runtime/debug"

	"github.com/cespare/xxhash/v2"

	"sequins/blocks/internal/fsst"
	"sequins/blocks/internal/index"
)

// Result is the answer for one key of a batch: the value, whether the key is there, and the
// damage that kept it from being known.
type Result struct {
	Value Value
	Found bool
	Err   error
}

// BatchSize is how many keys are looked up together at most: enough for the processor to wait
// for many cache lines at once, few enough for their state to stay in the first cache.
const BatchSize = 64

// Values have memory together, in arenas that are each half as large again as the one before, up to maxArena.
const (
	arenaSize = 256 << 10
	maxArena  = 1 << 20
)

// BatchScratch is the memory that one caller at a time lends to [Reader.GetBatch]. The zero value is ready.
type BatchScratch struct {
	single  Scratch
	copies  []byte // values since Reset; those of earlier arenas stay where they are
	keys    [BatchSize]batchKey
	cold    []int // keys whose pages are not known to be in memory
	touched byte  // of the bytes that are read to bring their cache lines in
}

// Reads is how many pages have been read from files with this BatchScratch, and not found in memory, since it was made.
func (s *BatchScratch) Reads() uint64 { return s.single.reads }

// Reset gives the memory of all values back that GetBatch has returned with s.
func (s *BatchScratch) Reset() { s.copies = s.copies[:0] }

// makeRoom makes room for a value of n bytes, if there is none. What is left of an arena then is lost.
func (s *BatchScratch) makeRoom(n int) {
	if cap(s.copies)-len(s.copies) < n {
		s.copies = make([]byte, 0, max(n, arenaSize, min(cap(s.copies)/2*3, maxArena)))
	}
}

// batchKey is where the lookup of one key stands.
type batchKey struct {
	index  int // of the key in the batch
	hash   uint64
	rest   []byte // of the key, behind the block's prefix
	page   int    // the group that is guessed, and then the page that is found
	stored []byte // the page in the map
	mask   uint64 // which of its records can be the key's, see candidates

	symbols *fsst.Table // of the page, if its records are encoded

	first, last int // where in it the record probably is
}

// GetBatch looks up to BatchSize keys up and sets results[i] for keys[i]; results must be as long as keys.
// All values are valid until s is reset; large ones only until the reader is closed.
//
// A single lookup spends its time waiting for one cache line after the other. Here every stage is
// done for all keys before the next, so that their cache misses overlap.
func (r *Reader) GetBatch(keys [][]byte, results []Result, s *BatchScratch) {
	if r.data == nil || r.getMappedBatch(keys, results, s) != nil {
		for i, key := range keys {
			results[i] = r.getCopy(key, s)
		}
	}
}

// getMappedBatch is getSome; see getMapped.
func (r *Reader) getMappedBatch(keys [][]byte, results []Result, s *BatchScratch) (err error) {
	defer r.recoverFault(debug.SetPanicOnFault(true), &err)
	if r.getSome(keys, results, s); !r.whole(&s.single) {
		err = errFault
	}
	return err
}

// getSome computes for all keys where to read, and then reads for all of them with as little code as can be: what the
// processor can do ahead is so many instructions, and the fewer there are between two reads, the more reads are on
// their way at once. A branch on what has not arrived yet, guessed wrong, ends that: with the index searched in the loop
// that hashes, a key takes a quarter longer.
func (r *Reader) getSome(keys [][]byte, results []Result, s *BatchScratch) {
	clear(results)
	s.cold = s.cold[:0]
	left := r.mapBatch(keys, results, s, r.guessPages(keys, s))
	r.prefetch(keys, s)
	s.touchRecords(left)
	for i := range left {
		b := &left[i]
		key := keys[b.index]
		var start int
		var found, absent bool
		room := len(b.stored)
		if b.symbols != nil {
			room *= 3 // nearly always
		}
		s.makeRoom(room)
		if s.copies, start, found, absent = appendValue(s.copies, b.stored, key, b.mask, b.symbols); found {
			results[b.index] = Result{Value: Value{small: s.copies[start:len(s.copies):len(s.copies)]}, Found: true}
		} else if !absent {
			results[b.index] = r.getCopy(key, s)
		}
	}
	for _, i := range s.cold {
		results[i] = r.getCopy(keys[i], s)
	}
}

// prefetch has the kernel begin to read the pages of the cold keys, so that the disk reads them at the same time while
// the keys are looked up one after the other.
func (r *Reader) prefetch(keys [][]byte, s *BatchScratch) {
	if len(s.cold) < 2 {
		return
	}
	for _, i := range s.cold {
		rest, _ := r.index.CutPrefix(keys[i])
		hash := xxhash.Sum64(keys[i])
		_, l := r.index.Page(r.index.Find(rest), hash)
		if passes, err := r.passes(hash, &s.single, true); err != nil || !passes {
			continue
		}
		if !r.beginRead(nil) {
			return
		}
		r.file.Prefetch(l.Offset(), int64(l.Length()))
		<-reading
		<-r.reads
	}
}

// touchRecords brings the heads of the pages and then the records into the cache, or the beginning of those that
// are longer than a few lines.
func (s *BatchScratch) touchRecords(left []batchKey) {
	touched := byte(0)
	for i := range left {
		head := (*[fastPage]byte)(left[i].stored)
		touched ^= head[0] ^ head[64] ^ head[100] // it has 3 bytes for each of some thirty records
	}
	for i := range left {
		b := &left[i]
		b.mask = candidates(b.stored, b.hash)
		b.first, b.last = likelyRecord(b.stored, b.mask)
	}
	for i := range left {
		b := &left[i]
		touched ^= b.stored[b.first] ^ b.stored[min(b.first+64, b.last)] ^ b.stored[b.last]
	}
	s.touched = touched
}

// guessPages returns those keys that begin as all keys of the block do, and brings what FindNear will compare into the cache.
// The filter is asked only where a page is not in memory: the fingerprints of one that is say as much.
func (r *Reader) guessPages(keys [][]byte, s *BatchScratch) []batchKey {
	n := 0
	for i, key := range keys {
		if rest, ok := r.index.CutPrefix(key); ok {
			b := &s.keys[n]
			b.index, b.hash, b.rest, b.page = i, xxhash.Sum64(key), rest, r.index.Guess(index.Fence(rest))
			n++
		}
	}
	for i := range n {
		s.touched ^= r.index.Touch(s.keys[i].page)
	}
	return s.keys[:n]
}

// mapBatch finds the pages in the map. It looks keys up whose page is packed as a whole, or tiny, and adds keys whose page is not known to be
// in memory to s.cold; the others are left, but for those that the index knows to be absent.
func (r *Reader) mapBatch(keys [][]byte, results []Result, s *BatchScratch, left []batchKey) []batchKey {
	n := 0
	for i := range left {
		b := &left[i]
		key := keys[b.index]
		var l index.Location
		if b.page, l = r.index.Page(r.index.FindNear(b.rest, b.page), b.hash); b.page < 0 {
			continue
		}
		if b.stored = r.inMemory(b.page, l, true); b.stored == nil {
			s.cold = append(s.cold, b.index)
			continue
		}
		if !r.isSearched(l) || len(b.stored) < fastPage+trailerSize {
			results[b.index] = r.getCopy(key, s)
			continue
		}
		b.symbols = r.symbols(b.page, l.Packed())
		if n < i { // a copy takes as long as all else here
			left[n] = *b
		}
		n++
	}
	return left[:n]
}

// getCopy is Get with a value that outlives the next lookup.
func (r *Reader) getCopy(key []byte, s *BatchScratch) Result {
	v, found, err := r.Get(key, &s.single)
	if v.small != nil {
		s.makeRoom(len(v.small))
		n := len(s.copies)
		s.copies = append(s.copies, v.small...)
		v.small = s.copies[n:len(s.copies):len(s.copies)]
	}
	return Result{v, found, err}
}
