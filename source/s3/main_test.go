package s3_test

import (
	"context"
	"flag"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"sequins/source"
	"sequins/source/s3"
	"sequins/test/gateway"
	"sequins/test/objectstest"
	"sequins/test/sourcetest"
)

func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "12"); err != nil { // they wait more than they compute
		panic(err)
	}
	os.Exit(m.Run())
}

// options are for a prefix of a gateway's bucket.
func options(endpoint, prefix string) s3.Options {
	return s3.Options{
		URL: "s3://" + gateway.Bucket + "/" + prefix, Region: gateway.Region, Endpoint: endpoint, PathStyle: true,
		AccessKeyID: gateway.AccessKey, SecretAccessKey: gateway.SecretKey,
	}
}

// open makes a source.
func open(t testing.TB, o s3.Options) source.Source {
	t.Helper()
	src, err := s3.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
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
	sourcetest.Run(t, 1000, func(t *testing.T) sourcetest.Place {
		return place{g, "a prefix/" + strings.ToLower(t.Name()[strings.IndexByte(t.Name(), '/')+1:])}
	})
}

func TestObjects(t *testing.T) {
	objectstest.Run(t, objectstest.Store{
		Bucket: gateway.Bucket, Shared: gateway.Start(t), URL: "s3://%s/", Page: 1000, Redirects: true,
		Start: func(t testing.TB) objectstest.Server { return gateway.Start(t) },
		Open: func(o objectstest.Options) (source.Source, error) {
			of := options(o.Endpoint, "")
			of.URL, of.Options = "s3://"+o.Bucket+"/"+o.Prefix, o.Options
			return s3.New(context.Background(), of)
		},
	})
}

func random(n int) []byte {
	b := make([]byte, n)
	rng := rand.NewChaCha8([32]byte{1})
	rng.Read(b)
	return b
}
