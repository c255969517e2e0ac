package blocks

import (
	"math/bits"

	"github.com/cespare/xxhash/v2"
)

// Result is the answer for one key of a batch: the value, whether the key is there, and the
// damage that kept it from being known.
type Result struct {
	Value Value
	Found bool
	Err   error
}

// batchSize is how many keys go through the stages together: enough for the processor to wait
// for many cache lines at once, few enough for their state to stay in the first cache.
const batchSize = 64

// BatchScratch is the memory that one caller at a time lends to [Reader.GetBatch].
type BatchScratch struct {
	single  Scratch
	copies  []byte
	keys    [batchSize]batchKey
	touched byte // of the bytes that are read to bring their cache lines in
}

// batchKey is where the lookup of one key stands.
type batchKey struct {
	index  int // of the key in the batch
	hash   uint64
	fence  uint64
	page   int // the first page that may be behind the key's, then the key's
	width  int // how many pages from there on may be behind it
	tie    bool
	stored []byte // the page in the map
}

// GetBatch looks many keys up and sets results[i] for keys[i]; results must be as long as keys.
// All values are valid until s is used again or the reader is closed.
//
// A single lookup spends its time waiting for one cache line after the other. Here every stage is
// done for 64 keys before the next, so that their cache misses overlap.
func (r *Reader) GetBatch(keys [][]byte, results []Result, s *BatchScratch) {
	s.copies = s.copies[:0]
	for len(keys) > 0 {
		n := min(len(keys), batchSize)
		r.getSome(keys[:n], results[:n], s)
		keys, results = keys[n:], results[n:]
	}
}

func (r *Reader) getSome(keys [][]byte, results []Result, s *BatchScratch) {
	left := r.hashBatch(keys, results, s.keys[:0])
	r.index.findBatch(left)
	left = r.mapBatch(keys, results, s, left)
	for i := range left {
		s.touched ^= left[i].stored[0] ^ left[i].stored[min(64, len(left[i].stored)-1)]
	}
	for i := range left {
		s.touched ^= touchRecord(left[i].stored, left[i].hash)
	}
	for i := range left {
		b := &left[i]
		key := keys[b.index]
		start, end, absent := findRecord(b.stored, key, b.hash)
		switch {
		case end > 0:
			results[b.index] = Result{Value: Value{small: b.stored[start:end:end]}, Found: true}
		case !absent:
			results[b.index] = r.getCopy(key, s)
		}
	}
}

// hashBatch returns those keys that begin as all keys of the block do. The filter is asked only where a page
// is not in memory: the fingerprints of one that is say as much.
func (r *Reader) hashBatch(keys [][]byte, results []Result, left []batchKey) []batchKey {
	for i, key := range keys {
		results[i] = Result{}
		if rest, ok := r.index.cutPrefix(key); ok {
			left = append(left, batchKey{index: i, hash: xxhash.Sum64(key), fence: fence(rest)})
		}
	}
	return left
}

// findBatch sets page of each key as find does, but for ties, which it marks. The binary searches
// go forward together, a step of each at a time, and without a branch that could be mispredicted.
func (x *index) findBatch(left []batchKey) {
	widest := 0
	for i := range left {
		b := &left[i]
		lo, hi := x.bucket(b.fence)
		b.page, b.width = lo, hi-lo
		widest = max(widest, b.width)
	}
	for range bits.Len(uint(widest)) {
		for i := range left {
			b := &left[i]
			half := (b.width + 1) >> 1
			b.width -= half
			next := b.page + half
			if x.entries[next-1].fence <= b.fence {
				b.page = next
			}
		}
	}
	for i := range left {
		b := &left[i]
		b.page--
		b.tie = b.page > 0 && x.entries[b.page].fence == b.fence
	}
}

// mapBatch finds the pages in the map. It answers at once for keys whose page is packed or
// not known to be there; the others are left.
func (r *Reader) mapBatch(keys [][]byte, results []Result, s *BatchScratch, left []batchKey) []batchKey {
	rest := left[:0]
	for i := range left {
		b := &left[i]
		key := keys[b.index]
		if b.tie {
			b.page = r.index.find(key[len(r.index.prefix):])
		}
		if !r.trusted.has(b.page) || r.index.entries[b.page].location.packed() {
			results[b.index] = r.getCopy(key, s)
			continue
		}
		b.stored = r.mapped(r.index.entries[b.page].location)
		rest = append(rest, *b)
	}
	return rest
}

// getCopy is Get with a value that outlives the next lookup.
func (r *Reader) getCopy(key []byte, s *BatchScratch) Result {
	v, found, err := r.Get(key, &s.single)
	if v.small != nil {
		n := len(s.copies)
		s.copies = append(s.copies, v.small...) // a grown slice leaves earlier values where they are
		v.small = s.copies[n:len(s.copies):len(s.copies)]
	}
	return Result{v, found, err}
}
