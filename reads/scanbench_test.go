package reads_test

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"sequins/reads"
	"sequins/test/expect"
)

// BenchmarkScan reads all records of a version over its partitions. Its figure is processor time, as it does not depend on
// what else the machine does.
func BenchmarkScan(b *testing.B) {
	for _, partitions := range []int{1, 8, 64} {
		for _, size := range []int{100, 1000} {
			b.Run(fmt.Sprintf("%d partitions, %d bytes", partitions, size), func(b *testing.B) {
				benchmarkScan(b, partitions, size)
			})
		}
	}
}

func benchmarkScan(b *testing.B, partitions, size int) {
	const n = 200_000
	records := make(map[string]string, n)
	value := strings.Repeat("x", size)
	for i := range n {
		records[fmt.Sprintf("user:%012d", i)] = value
	}
	set := held(b, "v1", records, make([][]string, partitions), func(int) bool { return true })
	r := reads.New(catalog{"db": set}, reads.Options{Logger: quiet}).NewRead()
	began := processorTime(b)
	b.ResetTimer()
	read := 0
	for b.Loop() {
		r.Begin(time.Now())
		s, o := r.Scan(context.Background(), &reads.Query{DB: []byte("db")}, &reads.Range{})
		if o != reads.Found {
			b.Fatal(o)
		}
		for s.Next() {
			read += len(s.Value())
		}
		r.Release()
	}
	b.ReportMetric(float64(processorTime(b)-began)/float64(b.N)/n, "CPU-ns/record")
}

// processorTime returns the processor time of this process.
func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	expect.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
