// Package sourcetest is the conformance suite of source.Source. Run runs it on an
// empty Place for each test. What package source makes of a listing is tested there.
package sourcetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"sequins/source"
	"sequins/test/expect"
	"sequins/test/noise"
)

// Place is an empty storage that the suite fills, and the source that reads it.
type Place interface {
	// Source returns the source under test.
	Source(t *testing.T) source.Source

	// Put writes a file and creates its directories. The name is
	// <db>/<version>/<file>, or shorter or longer.
	Put(t *testing.T, name string, data []byte)

	// Mkdir creates an empty directory. It returns false if the storage has none,
	// such as an object store.
	Mkdir(t *testing.T, name string) bool

	// Remove removes a file.
	Remove(t *testing.T, name string)
}

// Run runs the suite. Each test gets a Place of its own. A page of the storage's listings has page files; 0 if listings are not
// divided.
func Run(t *testing.T, page int, newPlace func(t *testing.T) Place) {
	tests := []struct {
		name string
		run  func(*testing.T, Place)
	}{
		{"Databases", testDatabases},
		{"Versions", testVersions},
		{"Files", testFiles},
		{"MapFiles", testMapFiles},
		{"NoFiles", testNoFiles},
		{"ManyFiles", func(t *testing.T, p Place) { testManyFiles(t, p, page+20) }},
		{"NotThere", testNotThere},
		{"Open", testOpen},
		{"OpenAtOffset", testOpenAtOffset},
		{"OpenLarge", testOpenLarge},
		{"OpenListed", testOpenListed},
		{"OpenStaysInside", testOpenStaysInside},
		{"Write", testWrite},
		{"Cancel", testCancel},
		{"CancelWhileReading", testCancelWhileReading},
		{"Concurrent", testConcurrent},
		{"Partitions", testPartitions},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { tt.run(t, newPlace(t)) })
	}
}

func equal[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// files returns the data files of a version without markers.
func files(t *testing.T, src source.Source, db, version string) []source.File {
	t.Helper()
	return must(src.Contents(t.Context(), db, version))(t).Files
}

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		expect.NoError(t, err)
		return v
	}
}

func testDatabases(t *testing.T, p Place) {
	for _, db := range []string{"b", "a", "B", "a.b-c_d", "0", "healthz", "readyz", "livez", "lost+found", "a b", "ümlaut", "-x", "_hidden", ".hidden", strings.Repeat("n", 255)} {
		p.Put(t, db+"/1/part-00000", []byte("x"))
	}
	p.Put(t, "README", []byte("not a directory"))
	src, ctx := p.Source(t), t.Context()
	equal(t, "databases", must(source.Databases(ctx, src))(t),
		[]string{"0", "B", "a", "a.b-c_d", "b", strings.Repeat("n", 255)})
	in := must(source.ListNames(ctx, src, ""))(t)
	equal(t, "invalid databases", in.Invalid, []string{"-x", "a b", "healthz", "livez", "lost+found", "readyz", "ümlaut"})
	equal(t, "files", in.Files, []string{"README"})
}

func testVersions(t *testing.T, p Place) {
	for _, v := range []string{"10", "9", "2026-01-31", "2026-01-31T10_00", "v1", "V2", "healthz", "_temporary", ".staging", "1+1", "day=2026-01-31", "a,b@c", "1 1", "lost+found"} {
		p.Put(t, "db/"+v+"/part-00000", []byte("x"))
	}
	p.Put(t, "db/notes", []byte("not a directory"))
	p.Put(t, "db2/5/part-00000", nil)
	src, ctx := p.Source(t), t.Context()
	equal(t, "versions", must(source.Versions(ctx, src, "db"))(t),
		[]string{"1+1", "10", "2026-01-31", "2026-01-31T10_00", "9", "V2", "a,b@c", "day=2026-01-31", "healthz", "v1"})
	equal(t, "versions of the other", must(source.Versions(ctx, src, "db2"))(t), []string{"5"})
	in := must(source.ListNames(ctx, src, "db"))(t)
	equal(t, "invalid versions", in.Invalid, []string{"1 1", "lost+found"})
	equal(t, "files", in.Files, []string{"notes"})
}

func testFiles(t *testing.T, p Place) {
	before := time.Now().Add(-time.Minute)
	sizes := map[string]int{"part-00010": 10, "part-00002": 0, "part-r-00000.spl": 3, "data": 4, "Z": 1, "weird name+%41ü": 2}
	for name, size := range sizes {
		p.Put(t, "db/1/"+name, make([]byte, size))
	}
	for _, hidden := range []string{"_SUCCESS", ".part-00010.crc", "_logs/history", "_temporary/0/part-00000", ".x"} {
		p.Put(t, "db/1/"+hidden, []byte("x"))
	}
	p.Put(t, "db/1/nested/part-00000", []byte("x"))
	p.Put(t, "db/10/part-00000", []byte("x")) // a sibling with the same prefix
	contents := must(p.Source(t).Contents(t.Context(), "db", "1"))(t)
	var hidden []string
	for _, m := range contents.Hidden {
		hidden = append(hidden, m.Name)
		if isDir := m.Name == "_logs" || m.Name == "_temporary"; m.Dir != isDir || !isDir && (m.Size != 1 || m.ModTime.Before(before)) {
			t.Errorf("hidden: %+v", m)
		}
	}
	equal(t, "hidden", hidden, []string{".part-00010.crc", ".x", "_SUCCESS", "_logs", "_temporary"})
	equal(t, "directories", contents.Dirs, []string{"nested"})
	var names []string
	for _, f := range contents.Files {
		names = append(names, f.Name)
		if f.Size != int64(sizes[f.Name]) {
			t.Errorf("%s has %d bytes, want %d", f.Name, f.Size, sizes[f.Name])
		}
		if f.ModTime.Before(before) || f.ModTime.After(time.Now().Add(time.Minute)) {
			t.Errorf("%s was modified at %v, just now is %v", f.Name, f.ModTime, time.Now())
		}
	}
	equal(t, "files", names, []string{"Z", "data", "part-00002", "part-00010", "part-r-00000.spl", "weird name+%41ü"})
}

func testMapFiles(t *testing.T, p Place) {
	for _, name := range []string{"part-r-00001", "part-r-00000"} {
		p.Put(t, "db/1/"+name+"/data", []byte("the data"))
		p.Put(t, "db/1/"+name+"/index", []byte("index"))
		p.Put(t, "db/1/"+name+"/.data.crc", []byte("crc"))
	}
	p.Put(t, "db/1/part-r-00000-x", []byte("a file, which sorts before the slash"))
	p.Put(t, "db/1/deep/part-r-00000/data", []byte("too deep"))
	src := p.Source(t)
	var names []string
	for _, f := range files(t, src, "db", "1") {
		names = append(names, f.Name)
	}
	equal(t, "files", names, []string{"part-r-00000-x", "part-r-00000/data", "part-r-00001/data"})
	equal(t, "data", read(t, src, "part-r-00001/data", 0), "the data")
}

func testNoFiles(t *testing.T, p Place) {
	p.Put(t, "db/1/_SUCCESS", nil)
	src, ctx := p.Source(t), t.Context()
	equal(t, "files", files(t, src, "db", "1"), nil)
	if p.Mkdir(t, "db/2") {
		equal(t, "versions", must(source.Versions(ctx, src, "db"))(t), []string{"1", "2"})
		equal(t, "files", files(t, src, "db", "2"), nil)
	}
	if p.Mkdir(t, "empty") {
		equal(t, "databases", must(source.Databases(ctx, src))(t), []string{"db", "empty"})
		equal(t, "versions", must(source.Versions(ctx, src, "empty"))(t), nil)
	}
}

// testManyFiles lists more files than fit on one page of a listing.
func testManyFiles(t *testing.T, p Place, n int) {
	var want []string
	for i := range n {
		name := fmt.Sprintf("part-%05d", i)
		want = append(want, name)
		p.Put(t, "db/1/"+name, nil)
	}
	var got []string
	for _, f := range files(t, p.Source(t), "db", "1") {
		got = append(got, f.Name)
	}
	equal(t, "files", got, want)
}

func testNotThere(t *testing.T, p Place) {
	p.Put(t, "db/1/part-00000", []byte("x"))
	src, ctx := p.Source(t), t.Context()
	for what, call := range map[string]func() error{
		"versions of no db":        func() error { _, err := source.Versions(ctx, src, "nodb"); return err },
		"versions of a bad name":   func() error { _, err := source.Versions(ctx, src, "../db"); return err },
		"files of no db":           func() error { _, err := src.Contents(ctx, "nodb", "1"); return err },
		"files of no version":      func() error { _, err := src.Contents(ctx, "db", "2"); return err },
		"files of a bad version":   func() error { _, err := src.Contents(ctx, "db", ".."); return err },
		"a file that is not there": func() error { return open(ctx, src, "db", "1", "part-00001") },
		"a file of no version":     func() error { return open(ctx, src, "db", "2", "part-00000") },
		"no _SUCCESS":              func() error { return open(ctx, src, "db", "1", "_SUCCESS") },
		"a file below a file":      func() error { return open(ctx, src, "db", "1", "nodir/data") },
	} {
		if err := call(); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v, want fs.ErrNotExist", what, err)
		}
	}
	p.Remove(t, "db/1/part-00000")
	if err := open(ctx, src, "db", "1", "part-00000"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is gone: %v, want fs.ErrNotExist", err)
	}
}

func open(ctx context.Context, src source.Source, db, version, name string) error {
	f, err := src.Open(ctx, db, version, source.File{Name: name}, source.ReadOptions{})
	if err == nil {
		// An object store may report it at the first read.
		_, err = io.ReadAll(f)
		f.Close()
	}
	return err
}

func read(t *testing.T, src source.Source, name string, offset int64) string {
	t.Helper()
	f := must(src.Open(t.Context(), "db", "1", source.File{Name: name}, source.ReadOptions{Offset: offset}))(t)
	b := must(io.ReadAll(f))(t)
	expect.NoError(t, f.Close())
	return string(b)
}

func testOpen(t *testing.T, p Place) {
	p.Put(t, "db/1/part-00000", []byte("hello"))
	p.Put(t, "db/1/empty", nil)
	p.Put(t, "db/1/_SUCCESS", []byte("{}"))
	p.Put(t, "db/1/weird name+%41ü", []byte("weird"))
	src := p.Source(t)
	for name, want := range map[string]string{"part-00000": "hello", "empty": "", "_SUCCESS": "{}", "weird name+%41ü": "weird"} {
		equal(t, name, read(t, src, name, 0), want)
	}
	if err := open(t.Context(), src, "db", "", "_PIN"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file of the database that is not there: %v, want fs.ErrNotExist", err)
	}
	p.Put(t, "db/_PIN", []byte("pinned"))
	p.Put(t, "db/README", []byte("not hidden"))
	f := must(src.Open(t.Context(), "db", "", source.File{Name: "_PIN"}, source.ReadOptions{}))(t)
	equal(t, "a file of the database", string(must(io.ReadAll(f))(t)), "pinned")
	f.Close()
	for _, name := range []string{"README", "1/part-00000", "_x/../1/part-00000", ""} {
		if err := open(t.Context(), src, "db", "", name); err == nil {
			t.Errorf("opened %q of the database", name)
		}
	}
}

func testOpenAtOffset(t *testing.T, p Place) {
	p.Put(t, "db/1/part-00000", []byte("hello"))
	src := p.Source(t)
	for offset, want := range map[int64]string{0: "hello", 1: "ello", 4: "o", 5: ""} {
		equal(t, fmt.Sprint("from ", offset), read(t, src, "part-00000", offset), want)
	}
	if f, err := src.Open(t.Context(), "db", "1", source.File{Name: "part-00000"}, source.ReadOptions{Offset: -1}); err == nil {
		f.Close()
		t.Error("opened at a negative offset")
	}
}

func testOpenLarge(t *testing.T, p Place) {
	data := noise.Random(1, 9<<20)
	p.Put(t, "db/1/part-00000", data)
	src := p.Source(t)
	for _, offset := range []int64{0, 4<<20 + 17} {
		if got := read(t, src, "part-00000", offset); got != string(data[offset:]) {
			t.Errorf("read %d bytes from %d on that are not those written", len(got), offset)
		}
	}
}

// testOpenListed: Open reads exactly the listed file, or fails.
func testOpenListed(t *testing.T, p Place) {
	const name = "db/1/part-00000"
	p.Put(t, name, []byte("hello"))
	src := p.Source(t)
	file := files(t, src, "db", "1")[0]
	from := func(offset int64) (string, error) {
		f, err := src.Open(t.Context(), "db", "1", file, source.ReadOptions{Offset: offset})
		if err != nil {
			return "", err
		}
		defer f.Close()
		b, err := io.ReadAll(f)
		return string(b), err
	}
	for offset, want := range map[int64]string{0: "hello", 4: "o", 5: ""} {
		if got, err := from(offset); got != want || err != nil {
			t.Errorf("from %d: %q, %v", offset, got, err)
		}
	}
	for what, data := range map[string]string{"replaced": "other", "grown": "hello, world", "shrunk": "h", "emptied": ""} {
		p.Put(t, name, []byte(data))
		for _, offset := range []int64{0, 2} {
			if got, err := from(offset); got != "" || !errors.Is(err, source.ErrChanged) {
				t.Errorf("%s, from %d: %q, %v, want source.ErrChanged", what, offset, got, err)
			}
		}
	}
	p.Remove(t, name)
	if _, err := from(1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("removed: %v, want fs.ErrNotExist", err)
	}
}

func testOpenStaysInside(t *testing.T, p Place) {
	p.Put(t, "db/1/part-00000", []byte("x"))
	p.Put(t, "db/2/part-00000", []byte("secret"))
	src := p.Source(t)
	for _, name := range []string{"", ".", "..", "../2/part-00000", "x/../../2/part-00000", "/etc/passwd", "part-00000/", "a//b", "a\x00b"} {
		if err := open(t.Context(), src, "db", "1", name); err == nil {
			t.Errorf("opened %q", name)
		}
	}
	if err := open(t.Context(), src, "..", "1", "part-00000"); err == nil {
		t.Error("opened a db named ..")
	}
}

func testCancel(t *testing.T, p Place) {
	p.Put(t, "db/1/part-00000", []byte("x"))
	src := p.Source(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for what, call := range map[string]func() error{
		"Databases": func() error { _, err := source.Databases(ctx, src); return err },
		"Versions":  func() error { _, err := source.Versions(ctx, src, "db"); return err },
		"Contents":  func() error { _, err := src.Contents(ctx, "db", "1"); return err },
		"Open":      func() error { return open(ctx, src, "db", "1", "part-00000") },
	} {
		if err := call(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s after cancelling: %v", what, err)
		}
	}
}

func testCancelWhileReading(t *testing.T, p Place) {
	p.Put(t, "db/1/part-00000", noise.Random(1, 4<<20))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	f := must(p.Source(t).Open(ctx, "db", "1", source.File{Name: "part-00000"}, source.ReadOptions{}))(t)
	defer f.Close()
	if _, err := io.ReadFull(f, make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := io.Copy(io.Discard, f); !errors.Is(err, context.Canceled) {
		t.Errorf("reading after cancelling: %v", err)
	}
}

func testConcurrent(t *testing.T, p Place) {
	const n = 8
	for i := range n {
		p.Put(t, fmt.Sprintf("db/1/part-%05d", i), slices.Repeat([]byte{byte('a' + i)}, 100_000))
	}
	src := p.Source(t)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			f, err := src.Open(t.Context(), "db", "1", source.File{Name: fmt.Sprintf("part-%05d", i)}, source.ReadOptions{})
			if err != nil {
				t.Error(err)
				return
			}
			defer f.Close()
			if b, err := io.ReadAll(f); err != nil || string(b) != strings.Repeat(string(rune('a'+i)), 100_000) {
				t.Errorf("file %d: %d bytes, %v", i, len(b), err)
			}
		})
	}
	wg.Wait()
}

// testPartitions: files in directories of a partitioned table are data, in the order of their full names.
func testPartitions(t *testing.T, p Place) {
	want := []string{
		"a=/b=/c=/d=/e=/f=/g=/h=/part-0",
		"day=1/city=S%C3%A3o Paulo%2F1/part-00001.parquet",
		"day=1/city=__HIVE_DEFAULT_PARTITION__/part-00000.parquet",
		"day=1/data", "day=1/index", "day=1/part-00000.parquet", "day=1/part-r-00000/data",
		"day=1-/part-0", "day=10/part-0",
		"part-00000.parquet", "x=1", "z=1=2/part-0",
	}
	slices.Sort(want)
	for _, name := range want {
		p.Put(t, "db/1/"+name, []byte(name))
	}
	for _, name := range []string{"_SUCCESS", "_metadata", "_common_metadata", ".part-00000.parquet.crc", "day=1/_SUCCESS", "day=1/_metadata",
		"day=1/_common_metadata", "day=1/.part-00000.parquet.crc", "day=1/_logs/0/part-0", "day=1/.hidden/city=x/part-0",
		"day=1/part-r-00000/index", "day=1/logs/x", "logs/day=1/part-0"} {
		p.Put(t, "db/1/"+name, []byte("not data"))
	}
	p.Mkdir(t, "db/1/day=2")
	src := p.Source(t)
	l := must(source.List(t.Context(), src, "db", "1", true))(t)
	var got []string
	for _, f := range l.Files {
		got = append(got, f.Name)
		r := must(src.Open(t.Context(), "db", "1", f, source.ReadOptions{}))(t)
		equal(t, "content", string(must(io.ReadAll(r))(t)), f.Name)
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	equal(t, "files", got, want)
	equal(t, "left out", l.LeftOut, []string{"day=1/logs/", "logs/"})
	p.Put(t, "db/1/day=3/part-0", []byte("new"))
	if now := must(source.List(t.Context(), src, "db", "1", true))(t); now.Fingerprint == l.Fingerprint {
		t.Error("a file in a new directory does not change the listing")
	}
	p.Put(t, "db/1/day=4/city=x/_temporary/0/part-0", []byte("not data"))
	if now := must(source.List(t.Context(), src, "db", "1", true))(t); !strings.Contains(now.Incomplete, "day=4/city=x/_temporary") {
		t.Errorf("a job is writing a directory: incomplete: %q", now.Incomplete)
	}
}
