// Package cache keeps answers of other nodes, the values of keys and the absence of keys, in a bounded number of bytes.
// An entry belongs to one readable version of a db, of which the keys never change, so that it is never stale and has no
// time of expiry. Entries of versions that are gone are not found again, and leave as others take their place.
//
// Which entries are kept is decided by W-TinyLFU: a key that is read once does not displace one that is read often. The
// library is otter. It looks a key up without an allocation, needs no goroutine, and an insertion takes effect in the call;
// ristretto has two goroutines, and a queue of insertions whose bytes are not counted.
package cache

import (
	"sync"
	"unsafe"

	"github.com/maypok86/otter/v2"
)

// MinBytes is the smallest size of a cache, in bytes.
const MinBytes = 1 << 20

// maxEntry is the largest cost of an entry in a large cache: a key and a value of 64 KiB each.
const maxEntry = 2 * (64<<10 + 64<<10/8)

// overhead is what an entry costs in addition to its key and its value, in bytes: the node and the place in the hash
// table of otter, and slack. A test compares the sum with the heap.
const overhead = 256

// key is a key of a version.
type key struct {
	version uint64
	name    string
}

// Cache is a cache of values. It is safe for concurrent use.
type Cache struct {
	entries *otter.Cache[key, []byte]
	limit   int64      // of the cost of an entry
	mu      sync.Mutex // held for insertions, so that there is at most one entry too many
}

// New returns a cache that never holds more than n bytes, at least MinBytes.
func New(n int64) *Cache {
	n = max(n, MinBytes)
	limit := min(maxEntry, n/16)
	return &Cache{limit: limit, entries: otter.Must(&otter.Options[key, []byte]{
		MaximumWeight: uint64(n - limit),
		Weigher:       func(k key, value []byte) uint32 { return uint32(cost(len(k.name), len(value))) },
		Executor:      func(f func()) { f() },
	})}
}

// cost returns the memory of an entry in bytes. An eighth is for the size classes of allocations.
func cost(name, value int) int64 {
	n := name + value
	return int64(overhead + n + n/8)
}

// text returns b as a string that shares its memory.
func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// Get returns the value of a key in a version, nil if the version does not have the key, and whether there is an entry.
// The value must not be changed.
func (c *Cache) Get(version uint64, name []byte) (value []byte, known bool) {
	return c.entries.GetIfPresent(key{version, text(name)}) // it does not keep the key
}

// Put stores a copy of a value, nil for a key that the version does not have, unless it is too large.
func (c *Cache) Put(version uint64, name, value []byte) {
	if cost(len(name), len(value)) > c.limit {
		return
	}
	b := append(make([]byte, 0, len(name)+len(value)), name...)
	var kept []byte
	if value != nil {
		kept = append(b, value...)[len(b):]
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entries.Set(key{version, text(b)}, kept)
	c.entries.CleanUp() // another goroutine may have prevented the eviction
}
