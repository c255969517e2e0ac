package source_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sequins/source"
	"sequins/test/expect"
)

// memory is a version whose files are in memory, named db/1/….
type memory map[string]string

func (m memory) ReadDir(context.Context, string) (source.Entries, error) {
	return source.Entries{}, nil
}

func (m memory) Replace(context.Context, string, string, []byte) error {
	return fs.ErrPermission
}

func (m memory) Path(db, version string) string { return "/" + db + "/" + version }

func (m memory) Contents(context.Context, string, string) (source.Contents, error) {
	var keys source.Keys
	hidden := map[string]bool{}
	for name, data := range m {
		if dir, _, nested := strings.Cut(name, "/"); source.Hidden(dir) && nested {
			hidden[dir] = true
			continue
		}
		keys.Add(source.File{Name: name, Size: int64(len(data))})
	}
	c := keys.Contents()
	for dir := range hidden {
		c.AddHidden(source.File{Name: dir}, true)
	}
	c.Sort()
	return c, nil
}

var errBroken = errors.New("broken disk")

func (m memory) Open(_ context.Context, _, _ string, file source.File, o source.ReadOptions) (io.ReadCloser, error) {
	data, ok := m[file.Name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	if data == "broken" {
		return nil, errBroken
	}
	return io.NopCloser(strings.NewReader(data[o.Offset:])), nil
}

func (m memory) with(names ...string) memory {
	for _, name := range names {
		m[name] = "x"
	}
	return m
}

func manifest(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	expect.NoError(t, err)
	return string(b)
}

func TestList(t *testing.T) {
	// Both as Hadoop 3.4.2 writes them.
	files, mapFiles := manifest(t, "manifest-files.json"), manifest(t, "manifest-mapfiles.json")
	marker := func(success string) memory { return memory{"_SUCCESS": success} }
	threeMapFiles := []string{"part-r-00000/data", "part-r-00000/index", "part-r-00001/data", "part-r-00001/index", "part-r-00002/data", "part-r-00002/index"}
	moved := func(s string) string { return strings.ReplaceAll(s, "/db/1/", "/staging/job_17/") }

	tests := []struct {
		name    string
		src     memory
		require bool
		want    string // the reason, or "" if complete
	}{
		{"no marker", memory{}.with("part-r-00000"), false, ""},
		{"no marker, required", memory{}.with("part-r-00000"), true, "no _SUCCESS file"},
		{"empty marker", marker(""), true, ""},
		{"marker of another kind", marker("done at noon"), true, ""},
		{"JSON of another kind", marker(`{"filenames": 3}`), true, ""},
		{"JSON that is no JSON", marker(`{done}`), true, ""},
		{"JSON without a list", marker(`{"success": true}`), true, ""},
		{"half a marker", marker(files[:len(files)/2]), true, "is truncated"},
		{"half a marker, not required", marker(files[:len(files)/2]), false, "is truncated"},
		{"a failed job", marker(`{"success": false, "filenames": []}`), true, "job failed"},

		{"all there", marker(files).with("part-r-00000", "part-r-00001", "part-r-00002"), true, ""},
		{"more than listed", marker(files).with("part-r-00000", "part-r-00001", "part-r-00002", "part-r-00003"), true, ""},
		{"one missing", marker(files).with("part-r-00000", "part-r-00002"), true, "db/1/part-r-00001, which is not there"},
		{"one missing, not required", marker(files).with("part-r-00000", "part-r-00002"), false, "part-r-00001"},
		{"all missing", marker(files), true, "part-r-00001"},

		{"MapFiles", marker(mapFiles).with(threeMapFiles...), true, ""},
		{"an index missing", marker(mapFiles).with(threeMapFiles[:5]...), true, "part-r-00002/index"},

		{"moved", marker(moved(files)).with("part-r-00000", "part-r-00001", "part-r-00002"), true, ""},
		{"moved, one missing", marker(moved(files)).with("part-r-00000", "part-r-00002"), true, "part-r-00001"},
		{"moved MapFiles", marker(moved(mapFiles)).with(threeMapFiles...), true, ""},
		{"moved MapFiles, an index missing", marker(moved(mapFiles)).with(threeMapFiles[:5]...), true, "part-r-00002/index"},

		{"keys, as of S3A", marker(`{"filenames": ["/team/db/1/part-0", "team/db/1/a%20b"]}`).with("part-0", "a%20b"), true, ""},
		{"files of other directories", marker(`{"filenames": ["/out/db/1/part-0", "/elsewhere/part-1"]}`).with("part-0"), true, ""},
		{"a name that leads outside", marker(`{"filenames": ["/out/db/1/../2/part-0"]}`).with("part-0"), true, ""},
		{"names of nothing", marker(`{"filenames": ["", "/", ".."]}`).with("part-0"), true, "not there"},
		{"a nested file, missing", marker(`{"filenames": ["s3a://b/db/1/x/y/part-0"]}`).with("part-0"), true, "x/y/part-0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l, err := source.List(t.Context(), tt.src, "db", "1", tt.require)
			expect.NoError(t, err)
			if (l.Incomplete == "") != (tt.want == "") || !strings.Contains(l.Incomplete, tt.want) {
				t.Errorf("incomplete because %q, want %q", l.Incomplete, tt.want)
			}
		})
	}
}

func TestListErrors(t *testing.T) {
	tests := []struct {
		name string
		src  memory
		want string
	}{
		{"unreadable marker", memory{"_SUCCESS": "broken"}, "broken disk"},
		{"unreadable file", memory{"_SUCCESS": `{"filenames": ["/db/1/_index"]}`, "_index": "broken"}, "broken disk"},
		{"huge marker", memory{"_SUCCESS": strings.Repeat(" ", 35<<20)}, "markers of more than"},
	}
	for _, tt := range tests {
		_, err := source.List(t.Context(), tt.src, "db", "1", false)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

// FuzzSuccess: no marker makes List fail uncleanly, or access a name outside the
// version.
func FuzzSuccess(f *testing.F) {
	f.Add(`{"filenames": ["hdfs://nn/db/1/../../x", "%2e%2e/y", "/db/1//", "file:/a%"]}`)
	f.Add(`{"success": false`)
	f.Add(`{"filenames": [null, "\u0000"]}`)
	f.Fuzz(func(t *testing.T, marker string) {
		src := guarded{memory{"_SUCCESS": marker}, t}
		if l, err := source.List(t.Context(), src, "db", "1", true); err != nil && l.Incomplete != "" {
			t.Errorf("incomplete because %q, and %v", l.Incomplete, err)
		}
	})
}

type guarded struct {
	memory
	t *testing.T
}

func (g guarded) Open(ctx context.Context, db, version string, file source.File, o source.ReadOptions) (io.ReadCloser, error) {
	if !source.ValidFile(file.Name) {
		g.t.Errorf("asked for %q", file.Name)
	}
	return g.memory.Open(ctx, db, version, file, o)
}
