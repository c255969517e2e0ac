//go:build integration

package s3_test

import (
	"io"
	"testing"

	"sequins/source"
	"sequins/test/expect"
	"sequins/test/gateway"
	"sequins/test/noise"
)

// BenchmarkRead reads a large object without limits, as fast as the server is.
func BenchmarkRead(b *testing.B) {
	g := gateway.Start(b)
	const size = 256 << 20
	g.Put(b, "db/1/file", noise.Random(1, size))
	src := open(b, options(g.Endpoint(), ""))
	b.SetBytes(size)
	for b.Loop() {
		f, err := src.Open(b.Context(), "db", "1", source.File{Name: "file"}, source.ReadOptions{})
		expect.NoError(b, err)
		if n, err := io.Copy(io.Discard, f); n != size || err != nil {
			b.Fatal(n, err)
		}
		f.Close()
	}
}

// BenchmarkLimited reads a gibibyte over connections that are limited to
// 20 MB/s each.
func BenchmarkLimited(b *testing.B) {
	g := gateway.Start(b)
	const size = 1 << 30
	g.Put(b, "db/1/file", noise.Random(1, size))
	p := gateway.NewProxy(b, g.Addr)
	p.Treat(b, `{"type": "bandwidth", "attributes": {"rate": 20000}}`)
	src := open(b, options(p.Endpoint(), ""))
	b.SetBytes(size)
	for b.Loop() {
		f, err := src.Open(b.Context(), "db", "1", source.File{Name: "file"}, source.ReadOptions{})
		expect.NoError(b, err)
		if n, err := io.Copy(io.Discard, f); n != size || err != nil {
			b.Fatal(n, err)
		}
		f.Close()
	}
}
