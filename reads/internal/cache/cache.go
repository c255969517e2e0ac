// Package cache keeps answers of other nodes, the values of keys and the absence of keys, in a bounded number of bytes.
// An entry belongs to one readable version of a db, of which the keys never change, so that it is never stale and has no
// time of expiry.
//
// Which entries are kept is decided by W-TinyLFU: a key that is read once does not displace one that is read often. The
// library is otter. It looks a key up without an allocation, needs no goroutine, and an insertion takes effect in the call;
// ristretto has two goroutines, and a queue of insertions whose bytes are not counted.
package cache

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/maypok86/otter/v2"
)

// MinBytes is the smallest size of a cache, in bytes.
const MinBytes = 1 << 20

// maxEntry is the largest cost of an entry in a large cache: a key and a value of 64 KiB each.
const maxEntry = 2 * (64<<10 + 64<<10/8)

// overhead is what an entry costs in addition to its key and its value, in bytes: entry, the node and the place in the hash
// table of otter, and slack. A test compares the sum with the heap.
const overhead = 256

// Entry is the answer for a key. It must not be changed.
type Entry struct {
	// Value is the value; nil if the version does not have the key.
	Value []byte
	// Bare means that the header is unknown, as in the answer to a batch. The rest is that header; empty if it had none.
	Bare                             bool
	ETag, LastModified, AcceptRanges []byte
}

// key is a key of a version.
type key struct {
	version uint64
	name    string
}

// Cache is a cache of keys. It is safe for concurrent use.
type Cache struct {
	entries *otter.Cache[key, *Entry]
	limit   int64 // of the cost of an entry
	maximum int64 // of the cost of all entries, after an insertion
	held    atomic.Int64

	mu       sync.Mutex      // held for insertions, so that there is at most one entry too many
	versions map[uint64]bool // that may have entries
}

// New returns a cache that never holds more than n bytes, at least MinBytes.
func New(n int64) *Cache {
	n = max(n, MinBytes)
	c := &Cache{limit: min(maxEntry, n/16), versions: make(map[uint64]bool)}
	c.maximum = n - c.limit
	c.entries = otter.Must(&otter.Options[key, *Entry]{
		MaximumWeight:    uint64(c.maximum),
		Weigher:          func(k key, e *Entry) uint32 { return uint32(cost(k, e)) },
		OnAtomicDeletion: func(d otter.DeletionEvent[key, *Entry]) { c.held.Add(-cost(d.Key, d.Value)) },
		Executor:         func(f func()) { f() },
	})
	return c
}

// cost returns the memory of an entry in bytes. An eighth is for the size classes of allocations.
func cost(k key, e *Entry) int64 {
	n := len(k.name) + e.size()
	return int64(overhead + n + n/8)
}

// size returns the bytes of the slices.
func (e *Entry) size() int {
	return len(e.Value) + len(e.ETag) + len(e.LastModified) + len(e.AcceptRanges)
}

// Get returns the entry of a key in a version, or nil.
func (c *Cache) Get(version uint64, name []byte) *Entry {
	e, _ := c.entries.GetIfPresent(key{version, unsafe.String(unsafe.SliceData(name), len(name))}) // it does not keep the key
	return e
}

// Put stores a copy of an entry, unless it is too large.
func (c *Cache) Put(version uint64, name []byte, e Entry) {
	if cost(key{name: unsafe.String(unsafe.SliceData(name), len(name))}, &e) > c.limit {
		return
	}
	k, kept := clone(version, name, e)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.versions[version] = true
	c.held.Add(cost(k, kept))
	c.entries.Set(k, kept)
	if c.held.Load() > c.maximum { // another goroutine has prevented the eviction
		c.entries.CleanUp()
	}
}

// clone copies all slices of an entry and its key into one.
func clone(version uint64, name []byte, e Entry) (key, *Entry) {
	b := make([]byte, 0, e.size()+len(name))
	add := func(s []byte) []byte {
		if s == nil {
			return nil
		}
		start := len(b)
		b = append(b, s...)
		return b[start:len(b):len(b)]
	}
	n := add(name)
	kept := &Entry{Value: add(e.Value), Bare: e.Bare, ETag: add(e.ETag), LastModified: add(e.LastModified), AcceptRanges: add(e.AcceptRanges)}
	return key{version, unsafe.String(unsafe.SliceData(n), len(n))}, kept
}

// Bytes returns the memory of the entries in bytes.
func (c *Cache) Bytes() int64 { return c.held.Load() }

// Drop removes the entries of all versions for which readable returns false. They would not be found again, and without
// Drop they would only leave as other entries displace them.
func (c *Cache) Drop(readable func(version uint64) bool) {
	gone := make(map[uint64]bool)
	c.mu.Lock()
	for v := range c.versions {
		if !readable(v) {
			gone[v] = true
			delete(c.versions, v)
		}
	}
	c.mu.Unlock()
	if len(gone) == 0 {
		return
	}
	for k := range c.entries.Keys() {
		if gone[k.version] {
			c.entries.Invalidate(k)
		}
	}
	c.entries.CleanUp()
}
