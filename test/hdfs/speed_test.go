package hdfs

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sequins/blocks"
	"sequins/load"
	"sequins/sequencefile"
	"sequins/shard"
	"sequins/source"
	"sequins/source/local"
)

// fast is a cluster with files as a job writes them, and the same on a local disk. On loopback the datanode, a Java process, has its share
// of the processors.
func fast(b *testing.B) (disk, dfs source.Source, files int, total int64) {
	b.Helper()
	files = 4
	c := start(b, "dn=1 rep=1 block=134217728")
	dir := b.TempDir()
	total = writeSnappy(b, filepath.Join(dir, "db", "1"), files, 600_000)
	c.Do(b, "dfs put src="+filepath.Join(dir, "db")+" dst=/speed/db")
	disk, err := local.New(dir)
	if err != nil {
		b.Fatal(err)
	}
	return disk, c.open(b, "/speed", nil), files, total
}

// BenchmarkRead reads from either, and says how much of the processors this process needs.
func BenchmarkRead(b *testing.B) {
	disk, dfs, files, total := fast(b)
	for _, place := range []struct {
		name string
		src  source.Source
	}{{"local", disk}, {"hdfs", dfs}} {
		for _, at := range []int{1, files} {
			b.Run(fmt.Sprintf("%s/streams=%d", place.name, at), func(b *testing.B) {
				b.SetBytes(total)
				before := cpu(b)
				for b.Loop() {
					readAll(b, place.src, files, at)
				}
				b.ReportMetric(float64((cpu(b)-before).Milliseconds())/float64(b.N)/(float64(total)/1e6), "cpu-ms/MB")
			})
		}
	}
}

// BenchmarkLoad loads from both in turn, and compares the medians: of the rate, and of the processor time that
// this process needs. Beside them is that of the cluster, which is on the same machine.
func BenchmarkLoad(b *testing.B) {
	disk, dfs, _, total := fast(b)
	var rates, costs, cluster [2][]float64
	for b.Loop() {
		for i, src := range []source.Source{disk, dfs} {
			begin, own, others := time.Now(), cpu(b), childrenCPU(b)
			loadAll(b, src)
			mb := float64(total) / 1e6
			rates[i] = append(rates[i], mb/time.Since(begin).Seconds())
			costs[i] = append(costs[i], (cpu(b)-own).Seconds()*1000/mb)
			cluster[i] = append(cluster[i], (childrenCPU(b)-others).Seconds()*1000/mb)
		}
	}
	b.ReportMetric(median(rates[0]), "local-MB/s")
	b.ReportMetric(median(rates[1]), "hdfs-MB/s")
	b.ReportMetric(median(rates[1])/median(rates[0]), "ratio")
	b.ReportMetric(median(costs[0]), "local-cpu-ms/MB")
	b.ReportMetric(median(costs[1]), "hdfs-cpu-ms/MB")
	b.ReportMetric(median(cluster[1]), "cluster-cpu-ms/MB")
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

// childrenCPU is the time that the processes which this one has started have had on processors.
func childrenCPU(b *testing.B) time.Duration {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		b.Fatal(err)
	}
	var ticks int64
	for _, name := range stats {
		stat, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		// proc(5): behind the name of the command, in parentheses, are the state, the parent, and as the 12th and
		// 13th the times in hundredths of a second.
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if fields[1] != strconv.Itoa(os.Getpid()) {
			continue
		}
		for _, f := range fields[11:13] {
			n, err := strconv.ParseInt(f, 10, 64)
			if err != nil {
				b.Fatal(err)
			}
			ticks += n
		}
	}
	return time.Duration(ticks) * (time.Second / 100)
}

// cpu is the time that this process has had on processors.
func cpu(b *testing.B) time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// writeSnappy writes sorted files that are cut as a MapReduce job cuts them. Their values compress to about a half. It returns how large
// they are together.
func writeSnappy(b *testing.B, dir string, files, records int) (total int64) {
	b.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		b.Fatal(err)
	}
	var writers []*sequencefile.Writer
	var names []string
	for i := range files {
		names = append(names, filepath.Join(dir, fmt.Sprintf("part-r-%05d", i)))
		f, err := os.Create(names[i])
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
		info, err := os.Stat(names[i])
		if err != nil {
			b.Fatal(err)
		}
		total += info.Size()
	}
	return total
}

// readAll reads the files, so many at a time.
func readAll(b *testing.B, src source.Source, files, at int) {
	names := make(chan string, files)
	for file := range files {
		names <- fmt.Sprintf("part-r-%05d", file)
	}
	close(names)
	var wg sync.WaitGroup
	for range at {
		wg.Go(func() {
			for name := range names {
				f, err := src.Open(b.Context(), "db", "1", source.File{Name: name}, source.ReadOptions{})
				if err == nil {
					_, err = io.Copy(io.Discard, f)
					f.Close()
				}
				if err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

func loadAll(b *testing.B, src source.Source) {
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
	var all []int
	for p := range plan.Partitions {
		all = append(all, p)
	}
	if err := loader.Load(b.Context(), plan, all, nil); err != nil {
		b.Fatal(err)
	}
	if err := store.Remove("db", "1"); err != nil {
		b.Fatal(err)
	}
}
