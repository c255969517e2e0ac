package s3_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"sequins/source"
	"sequins/source/objects"
	"sequins/source/s3"
	"sequins/test/gateway"
)

// TestLinks reads versions that are names for others.
func TestLinks(t *testing.T) {
	g := gateway.Start(t)
	g.Put(t, "p/db/1/part-00000", []byte("one"))
	g.Put(t, "p/db/1/_SUCCESS", nil)
	g.Put(t, "p/db/_hidden/part-00000", []byte("hidden"))
	for version, text := range map[string]string{
		"2": " 1\n", "3": "_hidden", "self": "self", "chain": "2", "nowhere": "9", "out": "../db/1", "none": " ", "long": strings.Repeat("x", 5000),
	} {
		g.Put(t, "p/db/"+version+"/_SYMLINK", []byte(text))
	}
	for version, want := range map[string]string{"1": "one", "2": "one", "3": "hidden"} {
		src := open(t, options(g.Endpoint(), "p")) // which remembers no link
		if got := content(t, src, version); got != want {
			t.Errorf("version %s: %q, want %q", version, got, want)
		}
		contents, err := src.Contents(t.Context(), "db", version)
		files := contents.Files
		if err != nil || len(files) != 1 || files[0].Name != "part-00000" || files[0].Size != int64(len(want)) {
			t.Errorf("files of %s: %v, %v", version, files, err)
		}
		if got := content(t, src, version); got != want {
			t.Errorf("version %s, listed: %q, want %q", version, got, want)
		}
	}
	src := open(t, options(g.Endpoint(), "p"))
	if c, err := src.Contents(t.Context(), "db", "self"); err != nil || len(c.Files) != 0 {
		t.Errorf("a link to itself: %v, %v", c.Files, err)
	}
	for version, want := range map[string]string{
		"chain": "is a link itself", "nowhere": "p/db/9/", "out": "not a valid name", "none": "not a valid name", "long": "not a valid name",
	} {
		if files, err := src.Contents(t.Context(), "db", version); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v; want %q", version, files, err, want)
		}
	}
	// Open reads what was listed until the next listing.
	if _, err := src.Contents(t.Context(), "db", "2"); err != nil {
		t.Fatal(err)
	}
	g.Put(t, "p/db/2/_SYMLINK", []byte("_hidden"))
	if got := content(t, src, "2"); got != "one" {
		t.Errorf("a link that was changed since: %q", got)
	}
	if _, err := src.Contents(t.Context(), "db", "2"); err != nil {
		t.Fatal(err)
	}
	if got := content(t, src, "2"); got != "hidden" {
		t.Errorf("a link that was changed, listed again: %q", got)
	}
}

func content(t *testing.T, src *s3.Source, version string) string {
	t.Helper()
	f, err := src.Open(t.Context(), "db", version, source.File{Name: "part-00000"}, source.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestMany lists more than fits on a page, of versions and of MapFiles.
func TestMany(t *testing.T) {
	g := gateway.Start(t)
	var keys, versions, files []string
	for i := range 2100 {
		versions = append(versions, fmt.Sprintf("v%04d", i))
		keys = append(keys, "db/"+versions[i]+"/x")
	}
	for i := range 600 {
		files = append(files, fmt.Sprintf("part-r-%05d/data", i))
		keys = append(keys, "maps/1/"+files[i], strings.TrimSuffix("maps/1/"+files[i], "data")+"index")
	}
	g.PutAll(t, append(keys, "maps/1/part-r-00000_$folder$", "maps/1/_temporary/0/data"), []byte("x"))
	src := open(t, options(g.Endpoint(), ""))
	got, err := src.Versions(t.Context(), "db")
	if err != nil || !slices.Equal(got, versions) {
		t.Errorf("%d versions, %v, want %d", len(got), err, len(versions))
	}
	listed, err := src.Contents(t.Context(), "maps", "1")
	if err != nil {
		t.Fatal(err)
	}
	got = nil
	for _, f := range listed.Files {
		got = append(got, f.Name)
	}
	if !slices.Equal(got, files) {
		t.Errorf("%d files, want %d", len(got), len(files))
	}
}

func TestNotThere(t *testing.T) {
	g := gateway.Start(t)
	g.Put(t, "p/db/1/file", nil)
	o := options(g.Endpoint(), "mistyped")
	if _, err := open(t, o).Databases(t.Context()); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "s3://bucket/mistyped/") {
		t.Errorf("a prefix without keys: %v", err)
	}
	o.URL = "s3://another/p"
	src := open(t, o)
	if _, err := src.Databases(t.Context()); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "s3://another/p/") {
		t.Errorf("no such bucket: %v", err)
	}
	if _, err := src.Open(t.Context(), "db", "1", source.File{Name: "file"}, source.ReadOptions{}); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "s3://another/p/db/1/file") {
		t.Errorf("no such bucket: %v", err)
	}
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
		_, listErr := src.Databases(t.Context())
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
	dbs, err := open(t, s3.Options{URL: "s3://bucket/p", PathStyle: true}).Databases(t.Context())
	if err != nil || !slices.Equal(dbs, []string{"db"}) {
		t.Errorf("by the environment: %v, %v", dbs, err)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "NOBODYSKEY")
	if _, err := open(t, options(g.Endpoint(), "p")).Databases(t.Context()); err != nil {
		t.Errorf("the configuration does not come before the environment: %v", err)
	}
	_, err = open(t, s3.Options{URL: "s3://bucket/p", PathStyle: true}).Databases(t.Context())
	if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "NOBODYSKEY") {
		t.Errorf("the environment's wrong key: %v", err)
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

// TestChangedWhileReading changes an object of several parts after its first bytes have been read: after the data that
// was read ahead, there is an error.
func TestChangedWhileReading(t *testing.T) {
	g := gateway.Start(t)
	src := open(t, options(g.Endpoint(), ""))
	old, other := random(4<<20), make([]byte, 4<<20)
	for name, test := range map[string]struct {
		change func()
		want   error
	}{
		"replaced": {func() { g.Put(t, "db/1/file", other) }, source.ErrChanged},
		"shrunk":   {func() { g.Put(t, "db/1/file", old[:1<<20]) }, source.ErrChanged},
		"emptied":  {func() { g.Put(t, "db/1/file", nil) }, source.ErrChanged},
		"grown":    {func() { g.Put(t, "db/1/file", append(slices.Clone(old), 1)) }, source.ErrChanged},
		"removed":  {func() { g.Remove(t, "db/1/file") }, fs.ErrNotExist},
	} {
		t.Run(name, func(t *testing.T) {
			g.Put(t, "db/1/file", old)
			f, err := src.Open(t.Context(), "db", "1", source.File{Name: "file"}, source.ReadOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			head := make([]byte, 1000)
			if _, err := io.ReadFull(f, head); err != nil {
				t.Fatal(err)
			}
			test.change()
			rest, err := io.ReadAll(f)
			if !errors.Is(err, test.want) || !strings.Contains(fmt.Sprint(err), "s3://bucket/db/1/file") {
				t.Errorf("%v, want %v", err, test.want)
			}
			if got := append(head, rest...); string(got) != string(old[:len(got)]) {
				t.Error("what was read is not what was opened")
			}
			if _, again := f.Read(head); again == nil || again.Error() != err.Error() {
				t.Errorf("the next Read: %v, want the same error", again)
			}
		})
	}
}

// TestEnds cancels and closes readers in the middle.
func TestEnds(t *testing.T) {
	g := gateway.Start(t)
	g.Put(t, "db/1/file", random(16<<20))
	noLeaks(t)
	src := open(t, options(g.Endpoint(), ""))
	for name, end := range map[string]func(cancel func(), f io.Closer){
		"cancel": func(cancel func(), _ io.Closer) { cancel() },
		"close":  func(_ func(), f io.Closer) { f.Close() },
	} {
		for _, after := range []int64{0, 10, 1 << 20, 8 << 20} {
			ctx, cancel := context.WithCancel(t.Context())
			f, err := src.Open(ctx, "db", "1", source.File{Name: "file"}, source.ReadOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.CopyN(io.Discard, f, after); err != nil {
				t.Fatal(err)
			}
			within(t, objects.DefaultTimeout/2, name, func() {
				end(cancel, f)
				_, err = io.Copy(io.Discard, f)
				f.Close()
			})
			if want := map[string]error{"cancel": context.Canceled, "close": fs.ErrClosed}[name]; !errors.Is(err, want) {
				t.Errorf("%s after %d bytes: %v, want %v", name, after, err, want)
			}
			cancel()
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
	dbs, err := src.Databases(t.Context())
	if want := []string{"good", "other", "plain"}; err != nil || !slices.Equal(dbs, want) {
		t.Errorf("databases %q, %v, want %q", dbs, err, want)
	}
	if invalid, err := src.Invalid(t.Context(), ""); err != nil || len(invalid) != 1 {
		t.Errorf("invalid databases %q, %v", invalid, err)
	}
	versions, err := src.Versions(t.Context(), "good")
	if want := []string{"1"}; err != nil || !slices.Equal(versions, want) {
		t.Errorf("versions %q, %v, want %q", versions, err, want)
	}
	if invalid, err := src.Invalid(t.Context(), "good"); err != nil || len(invalid) != 1 {
		t.Errorf("invalid versions %q, %v", invalid, err)
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
