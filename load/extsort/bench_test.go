package extsort

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"sequins/test/expect"
)

func BenchmarkRadixSort(b *testing.B) {
	for _, kind := range []string{"random", "hex", "users", "ascending", "few"} {
		a := fillArena(kind, 1_500_000, 100)
		unsorted := slices.Clone(a.entries())
		for name, sort := range map[string]func(){
			"radix":   a.sort,
			"library": func() { sortedByLibrary(a, a.entries()) },
		} {
			b.Run(kind+"/"+name, func(b *testing.B) {
				for b.Loop() {
					b.StopTimer()
					copy(a.entries(), unsorted)
					b.StartTimer()
					sort()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(a.n), "ns/record")
			})
		}
	}
}

// BenchmarkSorter sorts records of 16 or 17 bytes of key and 100 of value, in memory and through
// runs on the disk.
func BenchmarkSorter(b *testing.B) {
	const n = 4_000_000
	for _, kind := range []string{"hex", "users"} {
		for _, memory := range []int64{1 << 30, 256 << 20, 64 << 20} {
			b.Run(fmt.Sprintf("%s/%dMiB", kind, memory>>20), func(b *testing.B) {
				r := rand.New(rand.NewPCG(1, 2))
				keys := make([]byte, 0, 17*n)
				for i := range n {
					keys = append(keys, testKeys[kind](r, i, n)...)
				}
				b.ResetTimer()
				for b.Loop() {
					benchmarkSort(b, keys, n, memory)
				}
			})
		}
	}
}

func benchmarkSort(b *testing.B, keys []byte, n int, memory int64) {
	value := make([]byte, 100)
	length := len(keys) / n
	s := New(Options{Memory: memory, Dir: b.TempDir()})
	start := time.Now()
	for i := range n {
		expect.NoError(b, s.Add(keys[i*length:(i+1)*length], value, false))
	}
	added, runs := time.Now(), len(s.runs)
	expect.NoError(b, s.Merge(context.Background(), func(key, value []byte) error { return nil }))
	merged := time.Now()
	expect.NoError(b, s.Close())
	b.ReportMetric(float64(added.Sub(start).Nanoseconds())/float64(n), "add-ns/record")
	b.ReportMetric(float64(merged.Sub(added).Nanoseconds())/float64(n), "merge-ns/record")
	b.ReportMetric(float64(runs), "runs")
}
