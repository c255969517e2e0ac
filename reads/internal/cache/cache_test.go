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
				if value, known := c.Get(version, []byte(key)); !known {
					c.Put(version, []byte(key), want)
				} else if !bytes.Equal(value, want) || (value == nil) != (want == nil) {
					t.Errorf("%s in version %d: %.20q, want %.20q", key, version, value, want)
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
}

// Each byte of the heap that the entries need is counted, for small entries and for large ones.
func TestCountsWhatTheHeapHolds(t *testing.T) {
	for _, size := range []int{0, 1, 100, 1000, 10_000, 60_000} {
		const limit = 16 << 20
		c := cache.New(limit)
		value := make([]byte, size)
		before := heap()
		for i := range limit / (size + 200) {
			c.Put(1, fmt.Append(nil, "key ", i), value)
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
	c.Put(1, []byte("large"), make([]byte, cache.MinBytes/8))
	if _, known := c.Get(1, []byte("large")); known || c.Bytes() != 0 {
		t.Error("an entry of an eighth of the cache is kept")
	}
	key, value := []byte("key"), []byte("value")
	c.Put(1, key, value)
	copy(key, "xxx")
	copy(value, "yyyyy")
	if got, _ := c.Get(1, []byte("key")); string(got) != "value" {
		t.Errorf("%q", got)
	}
	c.Put(1, []byte("empty"), []byte{})
	c.Put(1, nil, nil)
	if got, known := c.Get(1, []byte("empty")); !known || got == nil {
		t.Errorf("the empty value: %q, %v", got, known)
	}
	if got, known := c.Get(1, nil); !known || got != nil {
		t.Errorf("the absent empty key: %q, %v", got, known)
	}
	c.Put(2, nil, []byte{})
	if got, known := c.Get(2, nil); !known || got == nil {
		t.Errorf("the empty value of the empty key: %q, %v", got, known)
	}
}

// An entry that is put again takes the place of the first.
func TestPutAgain(t *testing.T) {
	c := cache.New(0)
	c.Put(1, []byte("k"), []byte("v"))
	before := c.Bytes()
	for range 1000 {
		c.Put(1, []byte("k"), []byte("w"))
	}
	if got, _ := c.Get(1, []byte("k")); string(got) != "w" || c.Bytes() != before {
		t.Errorf("%q, %d bytes after %d", got, c.Bytes(), before)
	}
}

// Keys that are read often stay while others are read once.
func TestScanDoesNotDisplaceHotKeys(t *testing.T) {
	c := cache.New(0)
	hits := 0
	read := func(key string) {
		if _, known := c.Get(1, []byte(key)); known {
			hits++
			return
		}
		c.Put(1, []byte(key), make([]byte, 1000))
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
	c.Put(1, key, make([]byte, 100))
	if n := testing.AllocsPerRun(1000, func() { c.Get(1, key) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
