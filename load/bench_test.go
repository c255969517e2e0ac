package load

import (
	"bufio"
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"sequins/blocks"
	"sequins/shard"
	"sequins/store"
	"sequins/test/expect"
	"sequins/test/sequencefiles"
)

// generate writes n records of 16 + 100 bytes, cut by string into files, each
// sorted or shuffled. It returns their number of bytes in the files.
func generate(t testing.TB, w *world, files, n int, sorted bool, opts sequencefiles.WriterOptions) int64 {
	t.Helper()
	dir := filepath.Join(w.root, "db", "1")
	expect.NoError(t, os.MkdirAll(dir, 0o755))
	rng := rand.New(rand.NewPCG(1, 1))
	keys := make([][]uint64, files)
	for range n {
		k := rng.Uint64()
		p := shard.String.Partition(fmt.Appendf(nil, "%016x", k), files)
		keys[p] = append(keys[p], k)
	}
	var size int64
	var value []byte
	for i := range files {
		if sorted {
			slices.SortFunc(keys[i], cmp.Compare)
		}
		f := check(os.Create(filepath.Join(dir, fmt.Sprintf("part-r-%05d", i))))(t)
		b := bufio.NewWriterSize(f, 1<<20)
		sw := check(sequencefiles.NewWriter(b, opts))(t)
		for _, k := range keys[i] {
			value = value[:0]
			for range 10 { // half of it compresses
				value = append(strconv.AppendUint(value, 10_000+rng.Uint64N(90_000), 10), "value"...)
			}
			expect.NoError(t, sw.Append(fmt.Appendf(nil, "%016x", k), value))
		}
		expect.NoError(t, sw.Close())
		expect.NoError(t, b.Flush())
		size += check(f.Stat())(t).Size()
		expect.NoError(t, f.Close())
	}
	return size
}

// cpu returns the CPU time of this process in nanoseconds.
func cpu(t testing.TB) int64 {
	var r unix.Rusage
	expect.NoError(t, unix.Getrusage(unix.RUSAGE_SELF, &r))
	return r.Utime.Nano() + r.Stime.Nano()
}

// BenchmarkLoad loads a million records into the store, fsync included. Beside
// the time per load it gives the CPU time and the elapsed time per record.
func BenchmarkLoad(b *testing.B) {
	const n = 1_000_000
	for _, bb := range []struct {
		name   string
		files  int
		sorted bool
		in     sequencefiles.WriterOptions
		opts   Options
	}{
		{"sorted/none", 4, true, sequencefiles.WriterOptions{}, Options{}},
		{"sorted/snappy", 4, true, sequencefiles.WriterOptions{}, Options{Compression: blocks.FSST}},
		{"sorted/snappy/1-file", 1, true, sequencefiles.WriterOptions{}, Options{Compression: blocks.FSST}},
		{"sorted/snappy/1-worker", 4, true, sequencefiles.WriterOptions{}, Options{Compression: blocks.FSST, Workers: 1}},
		{"sorted/snappy/gzip-blocks", 4, true, sequencefiles.WriterOptions{Compression: sequencefiles.Block,
			Codec: "org.apache.hadoop.io.compress.GzipCodec"}, Options{Compression: blocks.FSST}},
		{"unsorted/snappy", 4, false, sequencefiles.WriterOptions{}, Options{Compression: blocks.FSST}},
		{"unsorted/snappy/32MiB", 4, false, sequencefiles.WriterOptions{}, Options{Compression: blocks.FSST, Memory: 32 << 20}},
		{"routed/snappy", 4, true, sequencefiles.WriterOptions{}, Options{Compression: blocks.FSST, Partitioner: "string"}},
		{"routed/snappy/32MiB", 4, true, sequencefiles.WriterOptions{}, Options{Compression: blocks.FSST, Partitioner: "string", Memory: 32 << 20}},
	} {
		b.Run(bb.name, func(b *testing.B) {
			w := newWorld(b)
			b.SetBytes(generate(b, w, bb.files, n, bb.sorted, bb.in))
			l := newLoader(w.src, w.store, nil, bb.opts)
			plan := check(l.Plan(b.Context(), "db", "1"))(b)
			var used int64
			b.ResetTimer()
			for b.Loop() {
				b.StopTimer()
				local := check(store.Open(b.TempDir()))(b)
				l := newLoader(w.src, local, nil, bb.opts)
				before := cpu(b)
				b.StartTimer()
				expect.NoError(b, l.Load(b.Context(), plan, all(plan)))
				b.StopTimer()
				used += cpu(b) - before
				expect.NoError(b, local.Remove("db", plan.Manifest().Content().Input))
				local.Close()
				b.StartTimer()
			}
			b.ReportMetric(float64(used)/float64(b.N)/n, "cpu-ns/record")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/record")
		})
	}
}

// TestAllocations: a record costs no allocation on its way; there are only
// those of each file, block, page and batch. The first are the same for all
// numbers of records, of pages there is one for some thirty records. (Under the
// race detector pools forget on purpose, so the bound has room.)
func TestAllocations(t *testing.T) {
	for _, tt := range []struct {
		name   string
		sorted bool
		opts   Options
	}{
		{"one pass", true, Options{}},
		{"sorted", false, Options{}},
		{"routed", true, Options{Partitioner: "string"}},
		{"routed in little memory", true, Options{Partitioner: "string", Memory: 4 << 20}},
	} {
		const few, many = 2_000, 10_000
		atFew, atMany := allocations(t, few, tt.sorted, tt.opts), allocations(t, many, tt.sorted, tt.opts)
		perRecord := (atMany - atFew) / (many - few)
		if perRecord > 0.2 {
			t.Errorf("%s: %.3f allocations a record", tt.name, perRecord)
		}
		t.Logf("%s: %.4f allocations a record", tt.name, perRecord)
	}
}

// allocations counts those of loading n records.
func allocations(t *testing.T, n int, sorted bool, opts Options) float64 {
	t.Helper()
	w := newWorld(t)
	generate(t, w, 2, n, sorted, sequencefiles.WriterOptions{})
	w.load(opts) // fills the pools
	w.newStore()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	w.load(opts)
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs - before.Mallocs)
}
