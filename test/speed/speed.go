// Package speed compares loads from servers with loads from a local disk, for the benchmarks of the sources.
// A version of files as a job writes them (Write) is put on both, and loaded from each in turn (Compare).
package speed

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"sequins/blocks"
	"sequins/load"
	"sequins/shard"
	"sequins/source"
	"sequins/store"
	"sequins/test/expect"
	"sequins/test/sequencefiles"
)

// Where the version that is loaded has to be in a source.
const (
	DB      = "db"
	Version = "1"
)

// Load loads partitions of a version into a store, without a node. Wanted partitions that are present and made by the same plan are
// kept.
func Load(ctx context.Context, l *load.Loader, to *store.Store, plan *load.Plan, want []int) error {
	dir, err := to.Create(plan.DB, plan.Manifest())
	if err != nil {
		return err
	}
	missing, err := dir.Missing(want)
	if err != nil {
		return err
	}
	staging := dir.Staging()
	return l.LoadInto(ctx, plan, load.Target{Staging: staging, Want: missing, Have: len(want) - len(missing), Publish: func(partitions []int) error {
		return dir.Publish(staging, partitions...)
	}})
}

// LoadAll loads all partitions of a version into a new store at path, without a node.
func LoadAll(ctx context.Context, l *load.Loader, path, db, version string) error {
	to, err := store.Open(path)
	if err != nil {
		return err
	}
	defer to.Close()
	plan, err := l.Plan(ctx, db, version)
	if err != nil {
		return err
	}
	all := make([]int, plan.Partitions)
	for i := range all {
		all[i] = i
	}
	return Load(ctx, l, to, plan, all)
}

// File is the name of the i-th file of a version, from 0.
func File(i int) string { return fmt.Sprintf("part-r-%05d", i) }

// Write writes sorted files that are cut as a MapReduce job cuts them. Their values, of 500 bytes, compress to
// about a half. It returns how large they are together.
func Write(tb testing.TB, dir string, files, records int) (total int64) {
	tb.Helper()
	expect.NoError(tb, os.MkdirAll(dir, 0o755))
	var writers []*sequencefiles.Writer
	for i := range files {
		f, err := os.Create(filepath.Join(dir, File(i)))
		expect.NoError(tb, err)
		defer f.Close()
		w, err := sequencefiles.NewWriter(f, sequencefiles.WriterOptions{Compression: sequencefiles.Block, Codec: "org.apache.hadoop.io.compress.SnappyCodec"})
		expect.NoError(tb, err)
		writers = append(writers, w)
	}
	noise := rand.NewChaCha8([32]byte{})
	value := make([]byte, 500)
	for i := range records {
		noise.Read(value[:250]) //nolint:errcheck // it never fails
		key := fmt.Appendf(nil, "key-%09d", i)
		expect.NoError(tb, writers[shard.Hadoop.Partition(key, files)].Append(key, value))
	}
	for i, w := range writers {
		expect.NoError(tb, w.Close())
		info, err := os.Stat(filepath.Join(dir, File(i)))
		expect.NoError(tb, err)
		total += info.Size()
	}
	return total
}

// A Remote is a source that is compared with a disk.
type Remote struct {
	Name   string // in the names of what is reported
	Source source.Source
	// CPU is the time that its servers have had on processors.
	CPU func(testing.TB) time.Duration
}

// Compare loads the same files, of total bytes, from a local disk and from elsewhere in turn, and reports the
// medians: of the rate, and of the processor time that this process needs. Beside them is that of the servers,
// which are on the same machine.
func Compare(b *testing.B, disk source.Source, remote Remote, total int64) {
	var rates, costs, server [2][]float64
	for b.Loop() {
		for i, src := range []source.Source{disk, remote.Source} {
			begin, own, others := time.Now(), CPU(b), remote.CPU(b)
			dir := b.TempDir()
			expect.NoError(b, LoadAll(b.Context(), load.New(src, nil, load.Options{Compression: blocks.FSST}), dir, DB, Version))
			expect.NoError(b, os.RemoveAll(dir))
			mb := float64(total) / 1e6
			rates[i] = append(rates[i], mb/time.Since(begin).Seconds())
			costs[i] = append(costs[i], (CPU(b)-own).Seconds()*1000/mb)
			server[i] = append(server[i], (remote.CPU(b)-others).Seconds()*1000/mb)
		}
	}
	b.ReportMetric(median(rates[0]), "local-MB/s")
	b.ReportMetric(median(rates[1]), remote.Name+"-MB/s")
	b.ReportMetric(median(rates[1])/median(rates[0]), "ratio")
	b.ReportMetric(median(costs[0]), "local-cpu-ms/MB")
	b.ReportMetric(median(costs[1]), remote.Name+"-cpu-ms/MB")
	b.ReportMetric(median(server[1]), "server-cpu-ms/MB")
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

// CPU is the time that this process has had on processors.
func CPU(tb testing.TB) time.Duration {
	tb.Helper()
	var r syscall.Rusage
	expect.NoError(tb, syscall.Getrusage(syscall.RUSAGE_SELF, &r))
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
