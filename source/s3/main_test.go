package s3_test

import (
	"context"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sequins/source"
	"sequins/source/s3"
	"sequins/source/sourcetest"
	"sequins/test/gateway"
)

// options are for a prefix of a gateway's bucket.
func options(endpoint, prefix string) s3.Options {
	return s3.Options{
		URL: "s3://" + gateway.Bucket + "/" + prefix, Region: gateway.Region, Endpoint: endpoint, PathStyle: true,
		AccessKeyID: gateway.AccessKey, SecretAccessKey: gateway.SecretKey, MaxRetries: 3,
	}
}

// open makes a source and closes it when the test ends.
func open(t testing.TB, o s3.Options) *s3.Source {
	t.Helper()
	src, err := s3.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { src.Close() })
	return src
}

// place is a prefix of a bucket.
type place struct {
	g      *gateway.Gateway
	prefix string
}

func (p place) Source(t *testing.T) source.Source { return open(t, options(p.g.Endpoint(), p.prefix)) }

func (p place) Put(t *testing.T, name string, data []byte) { p.g.Put(t, p.prefix+"/"+name, data) }

func (p place) Mkdir(t *testing.T, name string) bool {
	p.g.Put(t, p.prefix+"/"+name+"/", nil)
	return true
}

func (p place) Remove(t *testing.T, name string) { p.g.Remove(t, p.prefix+"/"+name) }

func TestConformance(t *testing.T) {
	g := gateway.Start(t)
	sourcetest.Run(t, func(t *testing.T) sourcetest.Place {
		return place{g, "a prefix/" + strings.ToLower(t.Name()[strings.IndexByte(t.Name(), '/')+1:])}
	})
}

func random(n int) []byte {
	b := make([]byte, n)
	rng := rand.NewChaCha8([32]byte{1})
	rng.Read(b)
	return b
}

// readAll reads db/1/file and fails the test if it is not want.
func readAll(ctx context.Context, t testing.TB, src source.Source, want []byte) {
	t.Helper()
	f, err := src.Open(ctx, "db", "1", source.File{Name: "file"}, source.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Fatalf("read %d bytes, which are not the %d written", len(got), len(want))
	}
}

// noLeaks fails the test if goroutines started after this call are left at its
// end. Cleanups run in reverse order: call it before opening what it checks.
func noLeaks(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
}

// within fails the test if f takes longer than limit.
func within(t testing.TB, limit time.Duration, what string, f func()) {
	t.Helper()
	start := time.Now()
	f()
	if took := time.Since(start); took > limit {
		t.Errorf("%s took %v, more than %v", what, took, limit)
	}
}
