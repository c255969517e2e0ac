package gcs_test

import (
	"flag"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"sequins/source"
	"sequins/source/gcs"
	"sequins/test/clouds"
	"sequins/test/objectstest"
	"sequins/test/sourcetest"
)

func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "12"); err != nil { // they wait more than they compute
		panic(err)
	}
	os.Exit(m.Run())
}

// options are for a source in a prefix of a server's bucket, with application default credentials or without.
type options struct {
	endpoint, bucket, prefix string
	credentials              bool
	gcs.Options
}

// at returns the options of a prefix of a server's bucket.
func at(endpoint, prefix string) options {
	return options{endpoint: endpoint, bucket: clouds.Bucket, prefix: prefix}
}

// open makes a source.
func open(t testing.TB, o options) source.Source {
	t.Helper()
	o.URL = "gs://" + o.bucket + "/" + o.prefix
	src, err := gcs.NewAt(o.Options, o.endpoint, o.credentials)
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// place is a prefix of a bucket.
type place struct {
	server *clouds.GCS
	prefix string
}

func (p place) Source(t *testing.T) source.Source {
	return open(t, at(p.server.Endpoint(), p.prefix))
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
	sourcetest.Run(t, 0, func(t *testing.T) sourcetest.Place {
		return place{server, "a prefix/" + strings.ToLower(t.Name()[strings.IndexByte(t.Name(), '/')+1:])}
	})
}

func TestObjects(t *testing.T) {
	objectstest.Run(t, objectstest.Store{
		Bucket: clouds.Bucket, Shared: clouds.StartGCS(t), URL: "gs://%s/",
		Start: func(t testing.TB) objectstest.Server { return clouds.StartGCS(t) },
		Open: func(o objectstest.Options) (source.Source, error) {
			return gcs.NewAt(gcs.Options{URL: "gs://" + o.Bucket + "/" + o.Prefix, Options: o.Options}, o.Endpoint, false)
		},
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
