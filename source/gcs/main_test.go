package gcs_test

import (
	"io"
	"testing"

	"sequins/source"
	"sequins/source/gcs"
	"sequins/test/clouds"
	"sequins/test/expect"
	"sequins/test/process"
)

func TestMain(m *testing.M) {
	process.Parallel(12) // they wait more than they compute
	m.Run()
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
