package s3_test

import (
	"fmt"
	"io"
	"testing"
	"time"

	"sequins/source"
	"sequins/source/s3"
	"sequins/test/gateway"
)

// TestParallel reads an object over connections that are limited each, and
// through one of them. The limit and the factor that is asked for leave room
// for machines that are busy and race detectors: BenchmarkLimited is about more.
func TestParallel(t *testing.T) {
	const size = 12 << 20
	p, data, o := faulty(t, size)
	p.Treat(t, `{"type": "bandwidth", "attributes": {"rate": 2000}}`)
	start := time.Now()
	if got := gateway.Get(t, p.Endpoint(), "db/1/file"); len(got) != size {
		t.Fatalf("read %d bytes", len(got))
	}
	one := time.Since(start).Seconds()
	o.Timeout = 0
	src := open(t, o)
	start = time.Now()
	readAll(t.Context(), t, src, data)
	all := time.Since(start).Seconds()
	t.Logf("%d MiB: %.2f s through one connection, %.2f s through several, %.1f times as fast", size>>20, one, all, one/all)
	if one/all < 3 {
		t.Errorf("only %.1f times as fast", one/all)
	}
}

// BenchmarkRead reads a large object without limits, as fast as the server is.
func BenchmarkRead(b *testing.B) {
	g := gateway.Start(b)
	const size = 256 << 20
	g.Put(b, "db/1/file", random(size))
	for _, memory := range []int64{1 << 18, s3.DefaultMemory} {
		b.Run(fmt.Sprint("memory=", memory>>10, "KiB"), func(b *testing.B) {
			o := options(g.Endpoint(), "")
			o.Memory = memory
			src := open(b, o)
			b.SetBytes(size)
			for b.Loop() {
				f, err := src.Open(b.Context(), "db", "1", source.File{Name: "file"}, source.ReadOptions{})
				if err != nil {
					b.Fatal(err)
				}
				if n, err := io.Copy(io.Discard, f); n != size || err != nil {
					b.Fatal(n, err)
				}
				f.Close()
			}
		})
	}
}

// BenchmarkLimited reads a gibibyte over connections that are limited to
// 20 MB/s each.
func BenchmarkLimited(b *testing.B) {
	g := gateway.Start(b)
	const size = 1 << 30
	g.Put(b, "db/1/file", random(size))
	p := gateway.NewProxy(b, g.Addr)
	p.Treat(b, `{"type": "bandwidth", "attributes": {"rate": 20000}}`)
	src := open(b, options(p.Endpoint(), ""))
	b.SetBytes(size)
	for b.Loop() {
		f, err := src.Open(b.Context(), "db", "1", source.File{Name: "file"}, source.ReadOptions{})
		if err != nil {
			b.Fatal(err)
		}
		if n, err := io.Copy(io.Discard, f); n != size || err != nil {
			b.Fatal(n, err)
		}
		f.Close()
	}
}
