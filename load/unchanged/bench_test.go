package unchanged_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"sequins/internal/content"
	"sequins/load"
	"sequins/load/unchanged"
	"sequins/shard"
	"sequins/source"
	"sequins/source/local"
	"sequins/store"
	"sequins/test/expect"
	"sequins/test/sequencefiles"
)

// BenchmarkLoad loads a version of 116 MB of SequenceFiles, with and without hashing them, and links one. Beside the time it gives the CPU
// time of this process per load.
func BenchmarkLoad(b *testing.B) {
	root := b.TempDir()
	size := writeFiles(b, filepath.Join(root, "db", "1"), 8, 1_000_000)
	src, err := local.New(root)
	expect.NoError(b, err)
	for _, how := range []string{"plain", "hashed", "linked"} {
		b.Run(how, func(b *testing.B) {
			b.SetBytes(size)
			dir := b.TempDir()
			local, err := store.Open(dir)
			expect.NoError(b, err)
			defer local.Close()
			if how == "linked" {
				loadOnce(b, src, local, "1", true)
			}
			before := cpu(b)
			b.ResetTimer()
			for range b.N {
				loadOnce(b, src, local, "2", how != "plain")
				b.StopTimer()
				expect.NoError(b, local.Remove("db", content.Input{Name: "2", Hash: hash}))
				b.StartTimer()
			}
			b.ReportMetric(float64(cpu(b)-before)/1e6/float64(b.N), "cpu-ms/op")
		})
	}
}

func cpu(b *testing.B) int64 {
	var r unix.Rusage
	expect.NoError(b, unix.Getrusage(unix.RUSAGE_SELF, &r))
	return r.Utime.Nano() + r.Stime.Nano()
}

// hash is that of the input of all versions.
const hash = "0123456789abcdef"

// loadOnce loads version 1 as another one.
func loadOnce(b *testing.B, src source.Source, local *store.Store, version string, hashed bool) {
	sums := unchanged.Watch(src)
	from := src
	if hashed {
		from = sums
	}
	loader := load.New(from, nil, load.Options{Partitioner: "auto"})
	plan, err := loader.Plan(b.Context(), "db", "1")
	expect.NoError(b, err)
	m := plan.Manifest()
	m.Version, m.Input = version, hash
	dir, err := local.Create("db", m)
	expect.NoError(b, err)
	to := dir.Staging()
	reuse := unchanged.New(b.Context(), loader, sums, plan, to)
	all, err := dir.Missing([]int{0, 1, 2, 3, 4, 5, 6, 7})
	expect.NoError(b, err)
	if hashed {
		linked, _, err := reuse.Link(b.Context(), all)
		expect.NoError(b, err)
		expect.NoError(b, dir.Publish(to, linked...))
		all, err = dir.Missing(all)
		expect.NoError(b, err)
	}
	target := load.Target{Staging: to, Want: all, Publish: func(partitions []int) error { return dir.Publish(to, partitions...) }}
	if hashed {
		target.MadeFrom = reuse.MadeFrom
	}
	expect.NoError(b, loader.LoadInto(b.Context(), plan, target))
}

// writeFiles writes n sorted records of 16 + 100 bytes, cut by String, and returns their size.
func writeFiles(b *testing.B, dir string, files, n int) (size int64) {
	for p := range files {
		path := filepath.Join(dir, fmt.Sprintf("part-r-%05d", p))
		sequencefiles.WriteFile(b, path, sequencefiles.WriterOptions{}, func(add func(key, value string)) {
			for i := range n {
				key := fmt.Sprintf("%016d", i)
				if shard.String.Partition([]byte(key), files) == p {
					add(key, fmt.Sprintf("%0100d", i*2654435761))
				}
			}
		})
		info, err := os.Stat(path)
		expect.NoError(b, err)
		size += info.Size()
	}
	return size
}
