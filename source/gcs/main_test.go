package gcs_test

import (
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sequins/source"
	"sequins/source/gcs"
	"sequins/source/sourcetest"
	"sequins/test/clouds"
)

// options are for a prefix of a server's bucket.
func options(endpoint, prefix string) gcs.Options {
	return gcs.Options{URL: "gs://" + clouds.Bucket + "/" + prefix, Endpoint: endpoint, Anonymous: true, MaxRetries: 3}
}

// open makes a source and closes it when the test ends.
func open(t testing.TB, o gcs.Options) *gcs.Source {
	t.Helper()
	src, err := gcs.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { src.Close() })
	return src
}

// place is a prefix of a bucket.
type place struct {
	server *clouds.GCS
	prefix string
}

func (p place) Source(t *testing.T) source.Source {
	return open(t, options(p.server.Endpoint(), p.prefix))
}

func (p place) Put(t *testing.T, name string, data []byte) {
	p.server.Put(t, p.prefix+"/"+name, data)
}

func (p place) Mkdir(t *testing.T, name string) bool {
	p.server.Put(t, p.prefix+"/"+name+"/", nil)
	return true
}

func (p place) Remove(t *testing.T, name string) { p.server.Remove(t, p.prefix+"/"+name) }

func TestConformance(t *testing.T) {
	server := clouds.StartGCS(t)
	sourcetest.Run(t, func(t *testing.T) sourcetest.Place {
		return place{server, "a prefix/" + strings.ToLower(t.Name()[strings.IndexByte(t.Name(), '/')+1:])}
	})
}

func random(n int) []byte {
	b := make([]byte, n)
	rng := rand.NewChaCha8([32]byte{1})
	rng.Read(b)
	return b
}

// read reads db/1/file.
func read(t testing.TB, src source.Source) ([]byte, error) {
	t.Helper()
	f, err := src.Open(t.Context(), "db", "1", source.File{Name: "file"}, source.ReadOptions{})
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
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
