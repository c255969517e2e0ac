package blocks

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"

	"sequins/test/expect"
)

// benchKeys is small, so that the benchmark can run anywhere; the comparisons with other engines,
// on ten million keys, are in the bench module.
const benchKeys = 4_000_000

func benchKey(dst []byte, i int) []byte {
	return fmt.Appendf(dst, "%016x", uint64(i)*(1<<63/benchKeys*2))
}

func benchBlock(b *testing.B, c Compression) *Reader {
	b.Helper()
	path := filepath.Join(b.TempDir(), "b.block")
	f, err := os.Create(path)
	expect.NoError(b, err)
	defer f.Close()
	w, err := NewWriter(f, WriterOptions{Compression: c, TempDir: b.TempDir()})
	expect.NoError(b, err)
	rng := rand.New(rand.NewPCG(1, 1))
	value := make([]byte, 100)
	var key []byte
	for i := range benchKeys {
		for j := range value {
			value[j] = "0123456789abcdef"[rng.Uint32()&15]
		}
		key = benchKey(key[:0], i)
		expect.NoError(b, w.Add(key, value))
	}
	if _, err := w.Finish(); err != nil {
		b.Fatal(err)
	}
	r, err := Open(path)
	expect.NoError(b, err)
	b.Cleanup(func() { r.Close() })
	return r
}

func BenchmarkGet(b *testing.B) {
	for _, c := range []Compression{None, FSST, Zstd} {
		r := benchBlock(b, c)
		keys := make([][]byte, 1<<16)
		absent := make([][]byte, 1<<16)
		rng := rand.New(rand.NewPCG(2, 2))
		for i := range keys {
			keys[i] = benchKey(nil, rng.IntN(benchKeys))
			absent[i] = append(benchKey(nil, rng.IntN(benchKeys))[:15], 'x')
		}
		var s Scratch
		b.Run(c.String()+"/hit", func(b *testing.B) {
			b.ReportAllocs()
			for i := range b.N {
				if _, ok, err := r.Get(keys[i&(1<<16-1)], &s); !ok || err != nil {
					b.Fatal(ok, err)
				}
			}
		})
		b.Run(c.String()+"/batch", func(b *testing.B) {
			b.ReportAllocs()
			var s BatchScratch
			results := make([]Result, 64)
			for i := 0; i < b.N; i += 64 {
				s.Reset()
				r.GetBatch(keys[i&(1<<16-1):][:64], results, &s)
				for j := range results {
					if !results[j].Found || results[j].Err != nil {
						b.Fatal(results[j])
					}
				}
			}
		})
		b.Run(c.String()+"/pread", func(b *testing.B) {
			for i := range b.N {
				key := keys[i&(1<<16-1)]
				page, _ := r.index.Page(r.index.Find(key), xxhash.Sum64(key))
				r.trusted.clear(page)
				if _, ok, err := r.Get(key, &s); !ok || err != nil {
					b.Fatal(ok, err)
				}
			}
		})
		b.Run(c.String()+"/miss", func(b *testing.B) {
			for i := range b.N {
				if _, ok, err := r.Get(absent[i&(1<<16-1)], &s); ok || err != nil {
					b.Fatal(ok, err)
				}
			}
		})
		b.Run(c.String()+"/sweep", func(b *testing.B) {
			for range b.N {
				expect.NoError(b, r.Sweep(func(time.Duration) error { return nil }))
			}
		})
	}
}

func BenchmarkWriter(b *testing.B) {
	for _, c := range []Compression{None, FSST, Zstd} {
		b.Run(c.String(), func(b *testing.B) {
			w, err := NewWriter(discard{}, WriterOptions{Compression: c, TempDir: b.TempDir()})
			expect.NoError(b, err)
			value := make([]byte, 100)
			rng := rand.New(rand.NewPCG(1, 1))
			var key []byte
			b.ReportAllocs()
			for i := range b.N {
				for j := 0; j < 100; j += 8 {
					v := rng.Uint64()
					for k := j; k < min(j+8, 100); k++ {
						value[k] = "0123456789abcdef"[v&15]
						v >>= 4
					}
				}
				key = fmt.Appendf(key[:0], "%016x", i)
				expect.NoError(b, w.Add(key, value))
			}
			if _, err := w.Finish(); err != nil {
				b.Fatal(err)
			}
		})
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// smallBlock writes a block of one page.
func smallBlock(b *testing.B) (path string, records []record) {
	b.Helper()
	path = filepath.Join(b.TempDir(), "small.block")
	records = make([]record, 20)
	for i := range records {
		records[i] = record{benchKey(nil, i), make([]byte, 50)}
	}
	expect.NoError(b, os.WriteFile(path, buildBlock(b, records, WriterOptions{Compression: None, Partitions: 1}), 0o644))
	return path, records
}

// BenchmarkOpenSmall opens a block of one page, as a start does thousands of times.
func BenchmarkOpenSmall(b *testing.B) {
	path, _ := smallBlock(b)
	b.ReportAllocs()
	for b.Loop() {
		r, err := Open(path)
		expect.NoError(b, err)
		expect.NoError(b, r.Close())
	}
}

// BenchmarkGetSmall gets keys of a block that is not mapped and whose pages are on the heap.
func BenchmarkGetSmall(b *testing.B) {
	path, records := smallBlock(b)
	r, err := Open(path)
	expect.NoError(b, err)
	defer r.Close()
	var s Scratch
	n := 0
	for b.Loop() {
		if _, found, err := r.Get(records[n%len(records)].key, &s); !found || err != nil {
			b.Fatal(found, err)
		}
		n++
	}
}
