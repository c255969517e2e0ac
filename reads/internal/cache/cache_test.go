package cache_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"sequins/reads/internal/cache"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// valueOf returns the value of a key in a version, nil if it is absent.
func valueOf(version uint64, key string, size int) []byte {
	if size == 0 {
		return nil
	}
	return bytes.Repeat([]byte(fmt.Sprint(version, key, ",")), size)[:size]
}

// Several goroutines add entries of several versions with random sizes; each entry is that of its version, and the
// cache never exceeds its limit.
func TestRandomEntries(t *testing.T) {
	const limit = 2 << 20
	c := cache.New(limit)
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(g), 1))
			for range 5_000 {
				version, n := rnd.Uint64N(3), int(rnd.ExpFloat64()*300)
				key := fmt.Sprint(n)
				size := 0
				if n%5 > 0 {
					size = 1 + n*n%3000
				}
				want := valueOf(version, key, size)
				if e := c.Get(version, []byte(key)); e == nil {
					c.Put(version, []byte(key), cache.Entry{Value: want, ETag: []byte(key)})
				} else if !bytes.Equal(e.Value, want) || (e.Value == nil) != (want == nil) || string(e.ETag) != key {
					t.Errorf("%s in version %d: %.20q, want %.20q", key, version, e.Value, want)
				}
				if n := c.Bytes(); n < 0 || n > limit {
					t.Errorf("the cache holds %d bytes", n)
				}
			}
		})
	}
	all.Wait()
	if c.Bytes() < limit/2 {
		t.Errorf("the cache holds %d bytes only", c.Bytes())
	}
	c.Drop(func(uint64) bool { return false })
	if n := c.Bytes(); n != 0 {
		t.Errorf("%d bytes without entries", n)
	}
}

// Each byte of the heap that the entries need is counted, for small entries and for large ones.
func TestCountsWhatTheHeapHolds(t *testing.T) {
	for _, size := range []int{0, 1, 100, 1000, 10_000, 60_000} {
		const limit = 16 << 20
		c := cache.New(limit)
		value := make([]byte, size)
		before := heap()
		for i := range limit / (size + 200) {
			c.Put(1, fmt.Append(nil, "key ", i), cache.Entry{Value: value, ETag: make([]byte, 18), LastModified: make([]byte, 29)})
		}
		held, counted := heap()-before, c.Bytes()
		t.Logf("values of %d bytes: %d on the heap, %d counted", size, held, counted)
		if held > counted+counted/20 || counted > limit {
			t.Errorf("values of %d bytes: %d on the heap, %d counted", size, held, counted)
		}
		runtime.KeepAlive(c)
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A value that would fill much of the cache is not kept, and entries do not share memory with the caller.
func TestWhatIsKept(t *testing.T) {
	c := cache.New(0)
	c.Put(1, []byte("large"), cache.Entry{Value: make([]byte, cache.MinBytes/8)})
	if c.Get(1, []byte("large")) != nil || c.Bytes() != 0 {
		t.Error("an entry of an eighth of the cache is kept")
	}
	key, value := []byte("key"), []byte("value")
	c.Put(1, key, cache.Entry{Value: value})
	copy(key, "xxx")
	copy(value, "yyyyy")
	if e := c.Get(1, []byte("key")); e == nil || string(e.Value) != "value" {
		t.Errorf("%+v", e)
	}
	c.Put(1, []byte("empty"), cache.Entry{Value: []byte{}})
	c.Put(1, nil, cache.Entry{})
	if e := c.Get(1, []byte("empty")); e == nil || e.Value == nil {
		t.Errorf("the empty value: %+v", e)
	}
	if e := c.Get(1, nil); e == nil || e.Value != nil {
		t.Errorf("the absent empty key: %+v", e)
	}
}

// An entry that is put again takes the place of the first.
func TestPutAgain(t *testing.T) {
	c := cache.New(0)
	c.Put(1, []byte("k"), cache.Entry{Value: []byte("v"), Bare: true})
	before := c.Bytes()
	for range 1000 {
		c.Put(1, []byte("k"), cache.Entry{Value: []byte("v"), ETag: []byte("e")})
	}
	if e := c.Get(1, []byte("k")); e == nil || e.Bare || string(e.ETag) != "e" || c.Bytes() > before+2 {
		t.Errorf("%+v, %d bytes after %d", e, c.Bytes(), before)
	}
}

// Drop removes the entries of versions that are gone, and no others.
func TestDrop(t *testing.T) {
	c := cache.New(0)
	for version := range uint64(3) {
		c.Put(version, []byte("k"), cache.Entry{})
	}
	one := c.Bytes() / 3
	c.Drop(func(version uint64) bool { return version != 1 })
	if c.Get(0, []byte("k")) == nil || c.Get(1, []byte("k")) != nil || c.Get(2, []byte("k")) == nil || c.Bytes() != 2*one {
		t.Errorf("%d bytes of %d are left", c.Bytes(), 3*one)
	}
}

// Keys that are read often stay while others are read once.
func TestScanDoesNotDisplaceHotKeys(t *testing.T) {
	c := cache.New(0)
	hits := 0
	read := func(key string) {
		if c.Get(1, []byte(key)) != nil {
			hits++
			return
		}
		c.Put(1, []byte(key), cache.Entry{Value: make([]byte, 1000)})
	}
	for i := range 100_000 {
		read(fmt.Sprint("hot ", i%100))
		if i%2 == 0 {
			read(fmt.Sprint("cold ", i))
		}
	}
	if hits < 95_000 {
		t.Errorf("%d of 100,000 reads of 100 hot keys were hits", hits)
	}
}

func TestHitsAllocateNothing(t *testing.T) {
	c := cache.New(0)
	key := []byte("key")
	c.Put(1, key, cache.Entry{Value: make([]byte, 100)})
	if n := testing.AllocsPerRun(1000, func() { c.Get(1, key) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
