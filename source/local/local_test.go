package local

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sequins/source"
	"sequins/test/expect"
	"sequins/test/sourcetest"
)

// dir is a place under a directory of the test's.
type dir string

func (d dir) Source(t *testing.T) source.Source {
	t.Helper()
	s, err := New(string(d))
	expect.NoError(t, err)
	return s
}

func (d dir) Put(t *testing.T, name string, data []byte) {
	t.Helper()
	path := filepath.Join(string(d), name)
	expect.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	expect.NoError(t, os.WriteFile(path, data, 0o644))
}

func (d dir) Mkdir(t *testing.T, name string) bool {
	t.Helper()
	expect.NoError(t, os.MkdirAll(filepath.Join(string(d), name), 0o755))
	return true
}

func (d dir) Remove(t *testing.T, name string) {
	t.Helper()
	expect.NoError(t, os.Remove(filepath.Join(string(d), name)))
}

func (d dir) link(t *testing.T, target, name string) {
	t.Helper()
	expect.NoError(t, os.Symlink(target, filepath.Join(string(d), name)))
}

func TestConformance(t *testing.T) {
	sourcetest.Run(t, 0, func(t *testing.T) sourcetest.Place { return dir(t.TempDir()) })
}

func TestNew(t *testing.T) {
	here, err := os.Getwd()
	expect.NoError(t, err)
	tests := []struct {
		path, want, err string
	}{
		{"/data", "/data/db/1", ""},
		{"/data/../x/", "/x/db/1", ""},
		{"file:///data", "/data/db/1", ""},
		{"file:/data", "/data/db/1", ""},
		{"FILE:///data%20sets", "/data sets/db/1", ""},
		{"file://localhost/data", "/data/db/1", ""},
		{"relative", here + "/relative/db/1", ""},
		{"/with%20percent", "/with%20percent/db/1", ""},
		{"file://data/sets", "", "file:///data/sets"},
		{"file://%zz", "", "invalid URL escape"},
		{"", "", "empty"},
		{"file:", "", "empty"},
	}
	for _, tt := range tests {
		s, err := New(tt.path)
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("New(%q): %v, want %q", tt.path, err, tt.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("New(%q): %v", tt.path, err)
		} else if got := s.Path("db", "1"); got != tt.want {
			t.Errorf("New(%q).Path = %q, want %q", tt.path, got, tt.want)
		}
	}
}

func TestNoRoot(t *testing.T) {
	s := dir(filepath.Join(t.TempDir(), "unmounted")).Source(t)
	if _, err := source.Databases(t.Context(), s); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "unmounted") {
		t.Errorf("listing a root that is not there: %v", err)
	}
}

func TestSymlinks(t *testing.T) {
	d := dir(t.TempDir())
	d.Put(t, "real/v/part-00000", []byte("hello"))
	d.Put(t, "elsewhere", []byte("file"))
	d.Mkdir(t, "db")
	d.link(t, "real", "linked")
	d.link(t, "nowhere", "broken")
	d.link(t, "elsewhere", "file")
	d.link(t, "../real/v", "db/1")
	d.link(t, "../nowhere", "db/2")

	s, ctx := d.Source(t), t.Context()
	dbs, err := source.Databases(ctx, s)
	if diff := cmp.Diff([]string{"broken", "db", "linked", "real"}, dbs); diff != "" || err != nil {
		t.Errorf("databases: %v\n%s", err, diff)
	}
	versions, err := source.Versions(ctx, s, "db")
	if diff := cmp.Diff([]string{"1", "2"}, versions); diff != "" || err != nil {
		t.Errorf("versions: %v\n%s", err, diff)
	}
	if _, err := source.Versions(ctx, s, "broken"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("where a link leads to nothing: %v", err)
	}
	f, err := s.Open(ctx, "db", "1", source.File{Name: "part-00000"}, source.ReadOptions{Offset: 1})
	expect.NoError(t, err)
	defer f.Close()
	if b, err := io.ReadAll(f); string(b) != "ello" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
}

func TestLinkedFiles(t *testing.T) {
	d := dir(t.TempDir())
	d.Put(t, "pool/blob", []byte("hello"))
	d.Put(t, "pool/map/data", []byte("data"))
	stamp := time.Date(2026, 1, 31, 10, 0, 0, 0, time.UTC)
	expect.NoError(t, os.Chtimes(filepath.Join(string(d), "pool/blob"), stamp, stamp))
	d.Mkdir(t, "db/1")
	d.link(t, "../../pool/blob", "db/1/part-00000")
	d.link(t, "../../pool/map", "db/1/part-00001")
	contents, err := d.Source(t).Contents(t.Context(), "db", "1")
	files := contents.Files
	if err != nil || len(files) != 2 {
		t.Fatalf("%v, %v", files, err)
	}
	// The size and the time are those of the file, not of the link.
	if f := files[0]; f.Name != "part-00000" || f.Size != 5 || !f.ModTime.Equal(stamp) {
		t.Errorf("%+v", f)
	}
	if f := files[1]; f.Name != "part-00001/data" || f.Size != 4 {
		t.Errorf("%+v", f)
	}
}

// A file that cannot be looked at must not be left out in silence: the number
// of files is the number of partitions.
func TestFilesThatCannotBeServed(t *testing.T) {
	tests := map[string]func(d dir, path string) error{
		"a link to nowhere": func(d dir, path string) error { return os.Symlink("nowhere", path) },
		"a link to itself":  func(d dir, path string) error { return os.Symlink(path, path) },
		"a pipe":            func(d dir, path string) error { return syscall.Mkfifo(path, 0o644) },
		"a MapFile's pipe": func(d dir, path string) error {
			return errors.Join(os.Mkdir(path, 0o755), syscall.Mkfifo(path+"/data", 0o644))
		},
	}
	for name, make := range tests {
		t.Run(name, func(t *testing.T) {
			d := dir(t.TempDir())
			d.Put(t, "db/1/part-00000", nil)
			expect.NoError(t, make(d, filepath.Join(string(d), "db/1/part-00001")))
			files, err := d.Source(t).Contents(t.Context(), "db", "1")
			if err == nil || !strings.Contains(err.Error(), "part-00001") || errors.Is(err, fs.ErrNotExist) {
				t.Errorf("listed %v, %v", files, err)
			}
			for _, name := range []string{"part-00001", "part-00001/data"} {
				if f, err := d.Source(t).Open(t.Context(), "db", "1", source.File{Name: name}, source.ReadOptions{}); err == nil {
					f.Close()
					t.Errorf("opened %s", name)
				}
			}
		})
	}
}

// TestBrokenMarkers: a _SUCCESS that is not a regular file is an error.
func TestBrokenMarkers(t *testing.T) {
	tests := map[string]struct {
		make func(path string) error
		says string
	}{
		"a pipe":           {func(path string) error { return syscall.Mkfifo(path, 0o644) }, "not a regular file"},
		"a link to itself": {func(path string) error { return os.Symlink(path, path) }, "too many levels"},
		"a device":         {func(path string) error { return os.Symlink("/dev/zero", path) }, "not a regular file"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d := dir(t.TempDir())
			d.Put(t, "db/1/part-00000", nil)
			expect.NoError(t, test.make(filepath.Join(string(d), "db/1/_SUCCESS")))
			l, err := source.List(t.Context(), d.Source(t), "db", "1", true)
			if err == nil || !strings.Contains(err.Error(), "_SUCCESS") || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%+v, %v, want %q", l, err, test.says)
			}
		})
	}
}

func TestOpenOfADirectory(t *testing.T) {
	d := dir(t.TempDir())
	d.Mkdir(t, "db/1/part-00000")
	if f, err := d.Source(t).Open(t.Context(), "db", "1", source.File{Name: "part-00000"}, source.ReadOptions{}); err == nil {
		f.Close()
		t.Error("opened a directory")
	}
}

// A file that is overwritten during a read gives an error at its end and at Close: the content may be mixed.
func TestOverwrittenWhileRead(t *testing.T) {
	later := time.Now().Add(time.Hour)
	changes := map[string]func(t *testing.T, path string){
		"bytes of the same length": func(t *testing.T, path string) {
			overwrite(t, path, strings.Repeat("b", 1000))
			expect.NoError(t, os.Chtimes(path, later, later))
		},
		"more bytes": func(t *testing.T, path string) { overwrite(t, path, strings.Repeat("b", 2000)) },
		"fewer bytes": func(t *testing.T, path string) {
			expect.NoError(t, os.Truncate(path, 900))
		},
		"another file": func(t *testing.T, path string) {
			overwrite(t, path+".new", strings.Repeat("c", 1200))
			expect.NoError(t, os.Rename(path+".new", path))
		},
	}
	for name, change := range changes {
		for _, toTheEnd := range []bool{true, false} {
			f, path := openListed(t)
			if _, err := io.ReadFull(f, make([]byte, 500)); err != nil {
				t.Fatal(err)
			}
			change(t, path)
			if toTheEnd {
				if _, err := io.Copy(io.Discard, f); !errors.Is(err, source.ErrChanged) || !strings.Contains(err.Error(), path) {
					t.Errorf("%s: reading on: %v", name, err)
				}
			}
			if err := f.Close(); !errors.Is(err, source.ErrChanged) || !strings.Contains(err.Error(), path) {
				t.Errorf("%s: closing: %v", name, err)
			}
		}
	}
}

// A file that is removed during a read is still read completely.
func TestRemovedWhileRead(t *testing.T) {
	f, path := openListed(t)
	expect.NoError(t, os.Remove(path))
	if b, err := io.ReadAll(f); err != nil || len(b) != 1000 {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

func openListed(t *testing.T) (f io.ReadCloser, path string) {
	t.Helper()
	d := dir(t.TempDir())
	d.Put(t, "db/1/part-00000", []byte(strings.Repeat("a", 1000)))
	c, err := d.Source(t).Contents(t.Context(), "db", "1")
	if err != nil || len(c.Files) != 1 {
		t.Fatal(c, err)
	}
	if f, err = d.Source(t).Open(t.Context(), "db", "1", c.Files[0], source.ReadOptions{}); err != nil {
		t.Fatal(err)
	}
	return f, filepath.Join(string(d), "db/1/part-00000")
}

func overwrite(t *testing.T, path, data string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o644)
	expect.NoError(t, err)
	if _, err := f.WriteString(data); err != nil {
		t.Fatal(err)
	}
	expect.NoError(t, f.Close())
}

// TestMarks: a file has the mark of its size and ends, whatever its times are, and wherever it is.
func TestMarks(t *testing.T) {
	large := bytes.Repeat([]byte("0123456789abcdef"), 1024)
	middle, end := slices.Clone(large), slices.Clone(large)
	middle[len(middle)/2], end[len(end)-1] = 'x', 'x'
	marks := func(contents map[string][]byte) map[string]string {
		root := t.TempDir()
		expect.NoError(t, os.MkdirAll(filepath.Join(root, "db/1"), 0o755))
		for name, data := range contents {
			expect.NoError(t, os.WriteFile(filepath.Join(root, "db/1", name), data, 0o644))
		}
		src, err := New(root)
		expect.NoError(t, err)
		found := map[string]string{}
		for range 2 { // the second listing reads nothing
			c, err := src.Contents(t.Context(), "db", "1")
			expect.NoError(t, err)
			for _, f := range c.Files {
				if before := found[f.Name]; f.Mark == "" || before != "" && before != f.Mark {
					t.Errorf("%s has the mark %q, before %q", f.Name, f.Mark, before)
				}
				found[f.Name] = f.Mark
			}
		}
		expect.NoError(t, os.Chtimes(filepath.Join(root, "db/1/a"), time.Time{}, time.Unix(1, 0)))
		expect.NoError(t, os.WriteFile(filepath.Join(root, "db/1/b"), []byte("rewritten"), 0o644))
		c, err := src.Contents(t.Context(), "db", "1")
		expect.NoError(t, err)
		if c.Files[0].Mark != found["a"] || c.Files[1].Mark == found["b"] {
			t.Errorf("touched and rewritten: %+v", c.Files)
		}
		return found
	}
	here := marks(map[string][]byte{"a": large, "b": []byte("x"), "middle": middle, "end": end, "empty": nil})
	there := marks(map[string][]byte{"a": large, "b": []byte("x")})
	if here["a"] != there["a"] || here["b"] != there["b"] || here["middle"] != here["a"] || here["end"] == here["a"] || here["empty"] == here["b"] {
		t.Errorf("%v, elsewhere %v", here, there)
	}
}

// TestRenamed: files that are linked, or moved with their directory, keep their times, and the listing says that they have just come.
func TestRenamed(t *testing.T) {
	d := dir(t.TempDir())
	d.Put(t, "stage/part-0", []byte("x"))
	d.Put(t, "stage/day=1/part-0", []byte("x"))
	d.Mkdir(t, "db/1")
	d.Mkdir(t, "db/2")
	expect.NoError(t, os.Rename(filepath.Join(string(d), "stage/day=1"), filepath.Join(string(d), "db/1/day=1")))
	d.link(t, "../../stage/part-0", "db/2/part-0")
	for _, version := range []string{"1", "2"} {
		c, err := d.Source(t).Contents(t.Context(), "db", version)
		if err != nil || len(c.Files) != 1 {
			t.Fatal(c, err)
		}
		if f := c.Files[0]; f.Written.IsZero() || c.Renamed.Before(f.Written) {
			t.Errorf("version %s: written at %v, renamed at %v", version, f.Written, c.Renamed)
		}
	}
}
