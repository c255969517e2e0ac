package blocks

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"sequins/test/blocktest"
	"sequins/test/expect"
)

// TestBatch compares batches with single lookups, over pages of every kind: packed and not, known
// to be in memory and not, large values and absent keys.
func TestBatch(t *testing.T) {
	for name, shape := range blocktest.KeyShapes {
		for _, c := range []Compression{None, FSST} {
			t.Run(fmt.Sprintf("%s/%v", name, c), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(10, 10))
				records := makeRecords(rng, shape, 3000, 60)
				records[len(records)/2].value = make([]byte, LargeValue+1)
				r := openFile(t, buildBlock(t, records, WriterOptions{Compression: c, BlockSize: 512}))
				var batch BatchScratch
				for range 60 {
					checkBatch(t, r, records, rng, &batch)
				}
			})
		}
	}
}

func checkBatch(t *testing.T, r *Reader, records []record, rng *rand.Rand, batch *BatchScratch) {
	t.Helper()
	keys := make([][]byte, rng.IntN(BatchSize+1))
	for i := range keys {
		keys[i] = randomBound(rng, records)
	}
	results := make([]Result, len(keys))
	r.GetBatch(keys, results, batch)
	var s Scratch
	for i, key := range keys {
		want, found, err := r.Get(key, &s)
		expect.NoError(t, err)
		got := results[i]
		if got.Err != nil || got.Found != found || got.Value.Len() != want.Len() || got.Value.Hash() != want.Hash() {
			t.Fatalf("%.60q: %v, %d bytes, %v; alone %v, %d bytes", key, got.Found, got.Value.Len(), got.Err, found, want.Len())
		}
	}
}

// The values of a batch take not much more memory than they are long, whatever their length.
func TestBatchMemory(t *testing.T) {
	for _, size := range []int{5000, 17_000, 30_000, 44_000, 65_000} {
		for _, c := range []Compression{None, FSST} {
			var records []record
			var keys [][]byte
			for i := range BatchSize {
				key := fmt.Appendf(nil, "key%06d", i)
				keys, records = append(keys, key), append(records, record{key, bytes.Repeat(fmt.Appendf(nil, "%d and so on ", i), size)[:size]})
			}
			r := openFile(t, buildBlock(t, records, WriterOptions{Compression: c}))
			results := make([]Result, BatchSize)
			var before, after runtime.MemStats
			var s BatchScratch
			r.GetBatch(keys[:1], results[:1], &s)
			runtime.ReadMemStats(&before)
			r.GetBatch(keys, results, &s)
			runtime.ReadMemStats(&after)
			for i, got := range results {
				if !got.Found || !bytes.Equal(got.Value.Bytes(), records[i].value) {
					t.Fatalf("%d bytes, %v: key %d: %v", size, c, i, got.Err)
				}
			}
			if ratio := float64(after.TotalAlloc-before.TotalAlloc) / float64(BatchSize*size); ratio > 1.6 {
				t.Errorf("values of %d bytes, %v: %.2f bytes of memory for each", size, c, ratio)
			}
		}
	}
}
