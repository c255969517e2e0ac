package s3_test

import (
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"sequins/source"
	"sequins/source/s3"
	"sequins/test/gateway"
)

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

// TestSecrets: a session token of the environment is sent without white space around it, and errors do not have the password of
// an endpoint in the environment.
func TestSecrets(t *testing.T) {
	var sent string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent = r.Header.Get("X-Amz-Security-Token")
		w.WriteHeader(http.StatusForbidden)
	}))
	defer server.Close()
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "A", "AWS_SECRET_ACCESS_KEY": "B", "AWS_SESSION_TOKEN": "token\n", "AWS_ENDPOINT_URL_S3": server.URL,
		"AWS_CONFIG_FILE": "/nonexistent", "AWS_EC2_METADATA_DISABLED": "true",
	} {
		t.Setenv(name, value)
	}
	o := s3.Options{URL: "s3://bucket/p", Region: "r", PathStyle: true}
	o.MaxRetries = -1
	if _, err := source.Databases(t.Context(), open(t, o)); !errors.Is(err, fs.ErrPermission) || sent != "token" {
		t.Errorf("sent %q, %v", sent, err)
	}
	t.Setenv("AWS_ENDPOINT_URL_S3", "http://u:hunter2@127.0.0.1:1/")
	if _, err := source.Databases(t.Context(), open(t, o)); err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "refused") {
		t.Errorf("%v", err)
	}
	o.Endpoint = "http://u:hunter2@127.0.0.1:1/"
	if _, err := s3.New(t.Context(), o); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("%v", err)
	}
}

func TestNew(t *testing.T) {
	for _, name := range []string{"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_PROFILE"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_CONFIG_FILE", "/nonexistent")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	for want, o := range map[string]s3.Options{
		"not of the form":               {URL: "s3:///x", Region: "r"},
		"s3://bucket/prefix":            {URL: "hdfs://x/y", Region: "r"},
		"s3x://b":                       {URL: "s3x://b", Region: "r"},
		"must be of the form s3:":       {URL: "s3://key:secret@b/x", Region: "r"},
		"set both or neither":           {URL: "s3://b/x", Region: "r", AccessKeyID: "a"},
		"set both":                      {URL: "s3://b/x", Region: "r", SecretAccessKey: "s"},
		"is not an http":                {URL: "s3://b/x", Region: "r", Endpoint: "localhost:9000"},
		"endpoint":                      {URL: "s3://b/x", Region: "r", Endpoint: "ftp://h"},
		"region is unknown: set region": {URL: "s3://b/x"},
	} {
		if _, err := s3.New(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", o, err, want)
		}
	}
	for url, want := range map[string]string{
		"s3://b": "s3://b/db/1", "s3://b/": "s3://b/db/1", "s3://b/x/y/": "s3://b/x/y/db/1", "s3://b//x/./z": "s3://b/x/z/db/1",
		"s3a://b/x": "s3://b/x/db/1", "s3n://b": "s3://b/db/1", "S3A://b": "s3://b/db/1",
	} {
		if got := open(t, s3.Options{URL: url, Region: "r"}).Path("db", "1"); got != want {
			t.Errorf("%s: %s, want %s", url, got, want)
		}
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
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(f); err != nil || string(b) != "x" {
		t.Errorf("read %q, %v", b, err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}
