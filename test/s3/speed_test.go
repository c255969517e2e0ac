package s3

import (
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
	"sequins/sequencefile"
	"sequins/shard"
	"sequins/source"
	"sequins/source/local"
	"sequins/source/s3"
	"sequins/test/gateway"
)

// BenchmarkLoad loads the same files, as a job writes them, from a local disk and from S3 in turn, and
// compares the medians: of the rate, and of the processor time that this process needs for it. On loopback
// the server has its share of the processors, which is given beside it.
func BenchmarkLoad(b *testing.B) {
	dir := b.TempDir()
	total := writeSnappy(b, filepath.Join(dir, "db", "1"), 4, 600_000)
	g := gateway.Start(b)
	g.PutTree(b, "db/1", filepath.Join(dir, "db", "1"))
	disk, err := local.New(dir)
	if err != nil {
		b.Fatal(err)
	}
	bucket, err := s3.New(b.Context(), s3.Options{
		URL: "s3://" + gateway.Bucket, Region: gateway.Region, Endpoint: g.Endpoint(), PathStyle: true,
		AccessKeyID: gateway.AccessKey, SecretAccessKey: gateway.SecretKey,
	})
	if err != nil {
		b.Fatal(err)
	}
	defer bucket.Close()
	var rates, costs, server [2][]float64
	for b.Loop() {
		for i, src := range []source.Source{disk, bucket} {
			begin, cpu, other := time.Now(), ownCPU(b), g.CPU(b)
			loadOnce(b, src)
			mb := float64(total) / 1e6
			rates[i] = append(rates[i], mb/time.Since(begin).Seconds())
			costs[i] = append(costs[i], (ownCPU(b)-cpu).Seconds()*1000/mb)
			server[i] = append(server[i], (g.CPU(b)-other).Seconds()*1000/mb)
		}
	}
	b.ReportMetric(median(rates[0]), "local-MB/s")
	b.ReportMetric(median(rates[1]), "s3-MB/s")
	b.ReportMetric(median(rates[1])/median(rates[0]), "ratio")
	b.ReportMetric(median(costs[0]), "local-cpu-ms/MB")
	b.ReportMetric(median(costs[1]), "s3-cpu-ms/MB")
	b.ReportMetric(median(server[1]), "server-cpu-ms/MB")
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

// ownCPU is the time that this process has had on processors.
func ownCPU(b *testing.B) time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// writeSnappy writes sorted files that are cut as a MapReduce job cuts them. Their values compress to about a
// half. It returns how large they are together.
func writeSnappy(b *testing.B, dir string, files, records int) (total int64) {
	b.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		b.Fatal(err)
	}
	var writers []*sequencefile.Writer
	for i := range files {
		f, err := os.Create(filepath.Join(dir, fmt.Sprintf("part-r-%05d", i)))
		if err != nil {
			b.Fatal(err)
		}
		defer f.Close()
		w, err := sequencefile.NewWriter(f, sequencefile.WriterOptions{Compression: sequencefile.Block, Codec: "org.apache.hadoop.io.compress.SnappyCodec"})
		if err != nil {
			b.Fatal(err)
		}
		writers = append(writers, w)
	}
	noise := rand.NewChaCha8([32]byte{})
	value := make([]byte, 500)
	for i := range records {
		noise.Read(value[:250])
		key := fmt.Appendf(nil, "key-%09d", i)
		if err := writers[shard.Hadoop.Partition(key, files)].Append(key, value); err != nil {
			b.Fatal(err)
		}
	}
	for i, w := range writers {
		if err := w.Close(); err != nil {
			b.Fatal(err)
		}
		info, err := os.Stat(filepath.Join(dir, fmt.Sprintf("part-r-%05d", i)))
		if err != nil {
			b.Fatal(err)
		}
		total += info.Size()
	}
	return total
}

func loadOnce(b *testing.B, src source.Source) {
	store, err := blocks.OpenStore(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	loader := load.New(src, store, nil, load.Options{Compression: blocks.Snappy})
	plan, err := loader.Plan(b.Context(), "db", "1")
	if err != nil {
		b.Fatal(err)
	}
	all := make([]int, plan.Partitions)
	for i := range all {
		all[i] = i
	}
	if err := loader.Load(b.Context(), plan, all, nil); err != nil {
		b.Fatal(err)
	}
	if err := store.Remove("db", "1"); err != nil {
		b.Fatal(err)
	}
}
