package objectstest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"sequins/source"
	"sequins/test/expect"
	"sequins/test/noise"
)

// testMany lists more than fits on a page, of versions and of MapFiles.
func testMany(t *testing.T, s Store) {
	server := s.shared()
	var keys, versions, files []string
	for i := range s.Page + 20 {
		versions = append(versions, fmt.Sprintf("v%04d", i))
		keys = append(keys, "db/"+versions[i]+"/x")
	}
	for i := range s.Page/2 + 20 {
		files = append(files, fmt.Sprintf("part-r-%05d/data", i))
		keys = append(keys, "maps/1/"+files[i], strings.TrimSuffix("maps/1/"+files[i], "data")+"index")
	}
	putAll(t, server, append(keys, "maps/1/part-r-00000_$folder$", "maps/1/_temporary/0/data"), []byte("x"))
	src := s.open(t, s.options(server.Endpoint(), ""))
	got, err := source.Versions(t.Context(), src, "db")
	if err != nil || !slices.Equal(got, versions) {
		t.Errorf("%d versions, %v, want %d", len(got), err, len(versions))
	}
	listed, err := src.Contents(t.Context(), "maps", "1")
	expect.NoError(t, err)
	got = nil
	for _, f := range listed.Files {
		got = append(got, f.Name)
	}
	if !slices.Equal(got, files) {
		t.Errorf("%d files, want %d", len(got), len(files))
	}
}

func testNotThere(t *testing.T, s Store) {
	server := s.shared()
	server.Put(t, "p/db/1/file", nil)
	o := s.options(server.Endpoint(), "mistyped")
	if _, err := source.Databases(t.Context(), s.open(t, o)); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), s.url(s.Bucket, "mistyped/")) {
		t.Errorf("a prefix without keys: %v", err)
	}
	o = s.options(server.Endpoint(), "p")
	o.Bucket = "another"
	src := s.open(t, o)
	if _, err := source.Databases(t.Context(), src); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), s.url("another", "p/")) {
		t.Errorf("no such bucket: %v", err)
	}
	if _, err := src.Open(t.Context(), "db", "1", source.File{Name: "file"}, source.ReadOptions{}); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), s.url("another", "p/db/1/file")) {
		t.Errorf("no such bucket: %v", err)
	}
}

// testChangedWhileReading changes an object of several parts after its first bytes have been read: after the data that
// was read ahead, there is an error.
func testChangedWhileReading(t *testing.T, s Store) {
	server := s.shared()
	src := s.open(t, s.options(server.Endpoint(), ""))
	old, other := noise.Random(1, 4<<20), make([]byte, 4<<20)
	for name, test := range map[string]struct {
		change func()
		want   error
	}{
		"replaced": {func() { server.Put(t, "db/1/file", other) }, source.ErrChanged},
		"shrunk":   {func() { server.Put(t, "db/1/file", old[:1<<20]) }, source.ErrChanged},
		"emptied":  {func() { server.Put(t, "db/1/file", nil) }, source.ErrChanged},
		"grown":    {func() { server.Put(t, "db/1/file", append(slices.Clone(old), 1)) }, source.ErrChanged},
		"removed":  {func() { server.Remove(t, "db/1/file") }, fs.ErrNotExist},
	} {
		t.Run(name, func(t *testing.T) {
			server.Put(t, "db/1/file", old)
			f, err := src.Open(t.Context(), "db", "1", source.File{Name: "file"}, source.ReadOptions{})
			expect.NoError(t, err)
			defer f.Close()
			head := make([]byte, 1000)
			if _, err := io.ReadFull(f, head); err != nil {
				t.Fatal(err)
			}
			test.change()
			rest, err := io.ReadAll(f)
			if !errors.Is(err, test.want) || !strings.Contains(fmt.Sprint(err), s.url(s.Bucket, "db/1/file")) {
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

// testEnds cancels and closes readers in the middle.
func testEnds(t *testing.T, s Store) {
	server := s.shared()
	server.Put(t, "db/1/file", noise.Random(1, 16<<20))
	noLeaks(t)
	src := s.open(t, s.options(server.Endpoint(), ""))
	for name, end := range map[string]func(cancel func(), f io.Closer){
		"cancel": func(cancel func(), _ io.Closer) { cancel() },
		"close":  func(_ func(), f io.Closer) { f.Close() },
	} {
		for _, after := range []int64{0, 10, 1 << 20, 8 << 20} {
			ctx, cancel := context.WithCancel(t.Context())
			f, err := src.Open(ctx, "db", "1", source.File{Name: "file"}, source.ReadOptions{})
			expect.NoError(t, err)
			if _, err := io.CopyN(io.Discard, f, after); err != nil {
				t.Fatal(err)
			}
			within(t, 10*time.Second, name, func() {
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
