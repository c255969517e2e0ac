package extsort

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// sortedByLibrary sorts entries as slices.SortFunc does it.
func sortedByLibrary(a *arena, e []entry) {
	slices.SortFunc(e, func(x, y entry) int {
		if c := cmp.Compare(x.prefix, y.prefix); c != 0 {
			return c
		}
		if c := bytes.Compare(a.key(x), a.key(y)); c != 0 {
			return c
		}
		return cmp.Compare(y.off, x.off)
	})
}

// testKeys makes n keys of the kinds that tell sorting algorithms apart.
var testKeys = map[string]func(r *rand.Rand, i, n int) string{
	"random":         func(r *rand.Rand, i, n int) string { return string(binary.BigEndian.AppendUint64(nil, r.Uint64())) },
	"hex":            func(r *rand.Rand, i, n int) string { return fmt.Sprintf("%016x", r.Uint64()) },
	"users":          func(r *rand.Rand, i, n int) string { return fmt.Sprintf("user:%012d", r.IntN(10*n)) },
	"ascending":      func(r *rand.Rand, i, n int) string { return fmt.Sprintf("user:%012d", i) },
	"descending":     func(r *rand.Rand, i, n int) string { return fmt.Sprintf("user:%012d", n-i) },
	"few":            func(r *rand.Rand, i, n int) string { return fmt.Sprint("key", r.IntN(5)) },
	"one":            func(r *rand.Rand, i, n int) string { return "the one key" },
	"zeros":          func(r *rand.Rand, i, n int) string { return strings.Repeat("\x00", r.IntN(40)) },
	"zeros and ones": func(r *rand.Rand, i, n int) string { return randomBits(r, r.IntN(20)) },
	"lengths":        func(r *rand.Rand, i, n int) string { return strings.Repeat("a", r.IntN(300)) },
	"differ late": func(r *rand.Rand, i, n int) string {
		return strings.Repeat("x", i%500) + "y" + strings.Repeat("x", 499-i%500)
	},
	"long prefix": func(r *rand.Rand, i, n int) string { return strings.Repeat("z", 100) + fmt.Sprint(r.IntN(n)) },
}

func randomBits(r *rand.Rand, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.IntN(2))
	}
	return string(b)
}

// fillArena makes an arena with n records of a kind of keys.
func fillArena(kind string, n int, valueLen int) *arena {
	r := rand.New(rand.NewPCG(1, 2))
	keys, size := make([]string, n), 0
	for i := range keys {
		keys[i] = testKeys[kind](r, i, n)
		size += len(keys[i])
	}
	a := &arena{mem: make([]byte, (size+n*(valueLen+maxRecordHead+entrySize))&^7)}
	value := make([]byte, valueLen)
	for _, k := range keys {
		a.add([]byte(k), value, false)
	}
	return a
}

func TestRadixSort(t *testing.T) {
	for kind := range testKeys {
		t.Run(kind, func(t *testing.T) {
			for _, n := range []int{0, 1, 2, maxCompared, maxCompared + 1, 200, 5000} {
				a := fillArena(kind, n, 3)
				want := slices.Clone(a.entries())
				sortedByLibrary(a, want)
				a.sort()
				for i, e := range a.entries() {
					if e.off != want[i].off {
						t.Fatalf("%d keys: place %d has %q at %d, want %q at %d", n, i, a.key(e), e.off, a.key(want[i]), want[i].off)
					}
				}
			}
		})
	}
}

// TestRadixSortStack: keys that part from the others one by one, and late, do not let the stack
// grow by a frame for each.
func TestRadixSortStack(t *testing.T) {
	const n = 3000
	a := &arena{mem: make([]byte, n*(n+64))}
	key := bytes.Repeat([]byte("x"), n)
	for i := range n {
		key[n-1-i] = 'y'
		a.add(key, nil, false)
		key[n-1-i] = 'x'
	}
	grown := make(chan int64)
	go func() {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		a.sort()
		runtime.ReadMemStats(&after)
		grown <- int64(after.StackInuse) - int64(before.StackInuse)
	}()
	if g := <-grown; g > 1<<20 {
		t.Errorf("the stack has grown by %d bytes", g)
	}
	for i, e := range a.entries() {
		if want := n - 1 - i; bytes.IndexByte(a.key(e), 'y') != want {
			t.Fatalf("place %d", i)
		}
	}
}
