//go:build integration

package hdfs

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"sequins/source"
	"sequins/source/local"
	"sequins/test/expect"
	"sequins/test/speed"
)

// fast is a cluster with files as a job writes them, and the same on a local disk. On loopback the datanode, a Java process, has its share
// of the processors.
func fast(b *testing.B) (disk, dfs source.Source, files int, total int64) {
	b.Helper()
	files = 4
	c := start(b, "dn=1 rep=1 block=134217728")
	dir := b.TempDir()
	total = speed.Write(b, filepath.Join(dir, speed.DB, speed.Version), files, 600_000)
	c.Do(b, "dfs put src="+filepath.Join(dir, speed.DB)+" dst=/speed/"+speed.DB)
	disk, err := local.New(dir)
	expect.NoError(b, err)
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
				before := speed.CPU(b)
				for b.Loop() {
					readAll(b, place.src, files, at)
				}
				b.ReportMetric(float64((speed.CPU(b)-before).Milliseconds())/float64(b.N)/(float64(total)/1e6), "cpu-ms/MB")
			})
		}
	}
}

// BenchmarkLoad compares loads from HDFS with loads from a disk.
func BenchmarkLoad(b *testing.B) {
	disk, dfs, _, total := fast(b)
	speed.Compare(b, disk, speed.Remote{Name: "hdfs", Source: dfs, CPU: childrenCPU}, total)
}

// childrenCPU is the time that the processes which this one has started have had on processors.
func childrenCPU(b testing.TB) time.Duration {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	expect.NoError(b, err)
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
			expect.NoError(b, err)
			ticks += n
		}
	}
	return time.Duration(ticks) * (time.Second / 100)
}

// readAll reads the files, so many at a time.
func readAll(b *testing.B, src source.Source, files, at int) {
	names := make(chan string, files)
	for file := range files {
		names <- speed.File(file)
	}
	close(names)
	var wg sync.WaitGroup
	for range at {
		wg.Go(func() {
			for name := range names {
				f, err := src.Open(b.Context(), speed.DB, speed.Version, source.File{Name: name}, source.ReadOptions{})
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
