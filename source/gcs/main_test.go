package gcs_test

import (
	"flag"
	"io"
	"math/rand/v2"
	"os"
	"testing"

	"sequins/source"
	"sequins/source/gcs"
	"sequins/test/clouds"
	"sequins/test/expect"
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
	expect.NoError(t, err)
	return src
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
