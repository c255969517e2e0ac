//go:build integration

package s3_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"sequins/source"
	"sequins/source/s3"
	"sequins/test/expect"
	"sequins/test/gateway"
	"sequins/test/objectstest"
	"sequins/test/sourcetest"
)

func TestConformance(t *testing.T) {
	server := gateway.Start(t)
	sourcetest.Run(t, 1000, func(t *testing.T) sourcetest.Place {
		return objectstest.NewPlace(t, server, func(t testing.TB, prefix string) source.Source { return open(t, options(server.Endpoint(), prefix)) })
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

// TestRefused has wrong credentials. None of it is tried again.
func TestRefused(t *testing.T) {
	g := gateway.Start(t)
	g.Put(t, "p/db/1/file", []byte("x"))
	for name, spoil := range map[string]func(*s3.Options){
		"no such key":  func(o *s3.Options) { o.AccessKeyID = "NOBODYSKEY" },
		"wrong secret": func(o *s3.Options) { o.SecretAccessKey = "wrong" },
	} {
		o := options(g.Endpoint(), "p")
		spoil(&o)
		src := open(t, o)
		_, listErr := source.Databases(t.Context(), src)
		_, openErr := src.Open(t.Context(), "db", "1", source.File{Name: "file"}, source.ReadOptions{})
		for _, err := range []error{listErr, openErr} {
			if !errors.Is(err, fs.ErrPermission) {
				t.Errorf("%s: %v, want fs.ErrPermission", name, err)
				continue
			}
			for _, want := range []string{"s3://bucket/p/", o.AccessKeyID, "the configuration"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%s: %v, which does not say %q", name, err, want)
				}
			}
			if strings.Contains(err.Error(), o.SecretAccessKey) {
				t.Errorf("%s: %v, which tells the secret", name, err)
			}
		}
	}
}

// TestChain finds key, region and endpoint where other programs do.
func TestChain(t *testing.T) {
	g := gateway.Start(t)
	g.Put(t, "p/db/1/file", []byte("x"))
	t.Setenv("AWS_ACCESS_KEY_ID", gateway.AccessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", gateway.SecretKey)
	t.Setenv("AWS_ENDPOINT_URL_S3", g.Endpoint())
	t.Setenv("AWS_CONFIG_FILE", "/nonexistent")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	dbs, err := source.Databases(t.Context(), open(t, s3.Options{URL: "s3://bucket/p", PathStyle: true}))
	if err != nil || !slices.Equal(dbs, []string{"db"}) {
		t.Errorf("by the environment: %v, %v", dbs, err)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", gateway.AccessKey+"\n")
	t.Setenv("AWS_SECRET_ACCESS_KEY", gateway.SecretKey+"\r\n")
	src := open(t, s3.Options{URL: "s3://bucket/p", PathStyle: true})
	if _, err := source.Databases(t.Context(), src); err != nil {
		t.Errorf("by an environment with newlines: %v", err)
	}
	o := options(g.Endpoint(), "p")
	o.AccessKeyID, o.SecretAccessKey = o.AccessKeyID+"\n", o.SecretAccessKey+"\n"
	if _, err := source.Databases(t.Context(), open(t, o)); err != nil {
		t.Errorf("by options with newlines: %v", err)
	}
	t.Setenv("AWS_SECRET_ACCESS_KEY", gateway.SecretKey)
	t.Setenv("AWS_ACCESS_KEY_ID", "NOBODYSKEY")
	if _, err := source.Databases(t.Context(), open(t, options(g.Endpoint(), "p"))); err != nil {
		t.Errorf("the configuration does not come before the environment: %v", err)
	}
	_, err = source.Databases(t.Context(), open(t, s3.Options{URL: "s3://bucket/p", PathStyle: true}))
	if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "NOBODYSKEY") {
		t.Errorf("the environment's wrong key: %v", err)
	}
}

// TestControlCharacters has keys with control characters in the names of a database, of a version and of a file. Names
// beside them are not affected. (This gateway has U+FFFD for them and does not encode keys; TestEncodedKeys has servers
// that do.)
func TestControlCharacters(t *testing.T) {
	g := gateway.Start(t)
	for _, key := range []string{
		"good/1/part-00000", "bad\x01db/1/part-00000", "good/2\x02/part-00000", "other/1/a\x1f", "plain/1/a +%20&é",
	} {
		g.Put(t, "p/"+key, []byte("x"))
	}
	src := open(t, options(g.Endpoint(), "p"))
	dbs, err := source.ListNames(t.Context(), src, "")
	if want := []string{"good", "other", "plain"}; err != nil || !slices.Equal(dbs.Names, want) || len(dbs.Invalid) != 1 {
		t.Errorf("databases %q, %v, want %q and an invalid one", dbs, err, want)
	}
	versions, err := source.ListNames(t.Context(), src, "good")
	if want := []string{"1"}; err != nil || !slices.Equal(versions.Names, want) || len(versions.Invalid) != 1 {
		t.Errorf("versions %q, %v, want %q and an invalid one", versions, err, want)
	}
	contents, err := src.Contents(t.Context(), "plain", "1")
	files := contents.Files
	if err != nil || len(files) != 1 || files[0].Name != "a +%20&é" {
		t.Fatalf("files %+v, %v", files, err)
	}
	f, err := src.Open(t.Context(), "plain", "1", files[0], source.ReadOptions{})
	expect.NoError(t, err)
	if b, err := io.ReadAll(f); err != nil || string(b) != "x" {
		t.Errorf("read %q, %v", b, err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}
