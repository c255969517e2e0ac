package source_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"sequins/source"
	"sequins/source/local"
	"sequins/source/objects"
	"sequins/test/expect"
	"sequins/test/sourcetest"
)

// TestLayouts runs on a source with directories and on one without: package source lists each kind in its own way.
func TestLayouts(t *testing.T) {
	for name, run := range map[string]func(*testing.T, sourcetest.Place){
		"Complete": testComplete, "Layouts": testLayouts, "Tables": testTables, "TableAtRoot": testTableAtRoot, "NotTables": testNotTables,
		"Remarks": testRemarks, "PartitionMarkers": testPartitionMarkers, "OddMarkers": testOddMarkers,
	} {
		t.Run(name+"/directories", func(t *testing.T) { run(t, dir(t.TempDir())) })
		t.Run(name+"/objects", func(t *testing.T) { run(t, inBucket{bucket{}}) })
	}
}

// dir is a local directory.
type dir string

func (d dir) Source(t *testing.T) source.Source { return must[source.Source](local.New(string(d)))(t) }

func (d dir) Put(t *testing.T, name string, data []byte) {
	t.Helper()
	file := filepath.Join(string(d), filepath.FromSlash(name))
	expect.NoError(t, errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, data, 0o644)))
}

func (d dir) Mkdir(t *testing.T, name string) bool {
	return os.MkdirAll(filepath.Join(string(d), name), 0o755) == nil
}

func (d dir) Remove(t *testing.T, name string) {
	expect.NoError(t, os.Remove(filepath.Join(string(d), name)))
}

// bucket is an object store in memory.
type bucket map[string][]byte

func (b bucket) URL(key string) string { return "memory://bucket/" + key }

func (b bucket) List(_ context.Context, prefix string, deep bool, _ string) (p objects.Page, err error) {
	for _, key := range slices.Sorted(maps.Keys(b)) {
		rest, ok := strings.CutPrefix(key, prefix)
		if dir, _, nested := strings.Cut(rest, "/"); ok && nested && !deep {
			p.Dirs = append(p.Dirs, prefix+dir+"/")
		} else if ok {
			p.Objects = append(p.Objects, objects.Object{Key: key, Size: int64(len(b[key])), Modified: noon, ID: "id"})
		}
	}
	return p, nil
}

func (b bucket) Get(_ context.Context, key, _ string, offset, _ int64) (*objects.Body, error) {
	data, ok := b[key]
	switch {
	case !ok:
		return nil, fs.ErrNotExist
	case offset >= int64(len(data)):
		return nil, objects.ErrRange
	}
	return &objects.Body{ReadCloser: io.NopCloser(bytes.NewReader(data[offset:])), Offset: offset, Size: int64(len(data)), ID: "id", Modified: noon}, nil
}

func (b bucket) Put(context.Context, string, []byte) error { return fs.ErrPermission }

// inBucket is the place of a bucket.
type inBucket struct{ bucket }

func (p inBucket) Source(*testing.T) source.Source {
	return objects.New(p.bucket, objects.Options{}, "")
}
func (p inBucket) Put(_ *testing.T, name string, data []byte) { p.bucket[name] = data }
func (p inBucket) Mkdir(*testing.T, string) bool              { return false }
func (p inBucket) Remove(_ *testing.T, name string)           { delete(p.bucket, name) }

func equal[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		expect.NoError(t, err)
		return v
	}
}

func testComplete(t *testing.T, p sourcetest.Place) {
	p.Put(t, "db/1/part-00000", []byte("x"))
	src := p.Source(t)
	check := func(require, want bool, because string, left ...string) {
		t.Helper()
		l, err := source.List(t.Context(), src, "db", "1", require)
		if err != nil || (l.Incomplete == "") != want || !strings.Contains(l.Incomplete, because) {
			t.Errorf("incomplete: %q %v, want complete %v because %q", l.Incomplete, err, want, because)
		}
		if want {
			equal(t, "left out", l.LeftOut, left)
		}
	}
	check(false, true, "")
	check(true, false, "no _SUCCESS")
	p.Put(t, "db/1/_SUCCESS", nil)
	check(true, true, "")
	p.Put(t, "db/1/_SUCCESS", []byte(`{"filenames": ["x://host/db/1/part-00000", "x://host/db/1/part-00001"]}`))
	check(true, false, "part-00001")
	p.Put(t, "db/1/part-00001", []byte("x"))
	check(true, true, "")
	p.Put(t, "db/1/part-00002", []byte("x"))
	check(true, true, "", "part-00002")
	p.Put(t, "db/1/_started_7", nil)
	check(true, false, "_started_7")
	p.Put(t, "db/1/_committed_7", []byte(`{"added": ["part-00000", "part-00001", "part-00003"], "removed": ["part-00002"]}`))
	check(true, false, "part-00003")
	p.Put(t, "db/1/_committed_7", []byte(`{"added": ["part-00000", "part-00001"], "removed": ["part-00002"]}`))
	check(true, true, "", "part-00002")
	p.Put(t, "db/1/_temporary/0/part-00003", []byte("x"))
	check(true, false, "_temporary")
	p.Put(t, "db/1/.spark-staging-1/day=2/part-00003", []byte("x"))
	check(true, false, ".spark-staging-1")
}

// testLayouts: unsupported layouts are refused with a reason.
func testLayouts(t *testing.T, p sourcetest.Place) {
	for what, version := range map[string]struct {
		files []string
		says  string
	}{
		"only directories":  {[]string{"_SUCCESS", "a/x", "b/x", "c/x", "d/x", "e/x", "f/x"}, "only directories (a, b, c, d, e and 1 more)"},
		"too deep":          {[]string{"part-0", "a=/b=/c=/d=/e=/f=/g=/h=/i=/part-0"}, "nested more than 8 deep (a=/b=/c=/d=/e=/f=/g=/h=/i=)"},
		"hidden column":     {[]string{"_SUCCESS", "part-0", "_day=1/part-0"}, "_day=1 is a directory of a partitioned table, and names that begin with _ are not read"},
		"other directories": {[]string{"part-0", "metadata/notes.txt", "logs/x"}, ""},
	} {
		db := strings.ReplaceAll(what, " ", "-")
		for _, name := range version.files {
			p.Put(t, db+"/1/"+name, []byte("x"))
		}
		src := p.Source(t)
		l, err := source.List(t.Context(), src, db, "1", false)
		if version.says == "" {
			equal(t, what, l.LeftOut, []string{"logs/", "metadata/"})
			if err != nil {
				t.Errorf("%s: %v", what, err)
			}
		} else if !errors.Is(err, source.ErrLayout) || !strings.Contains(err.Error(), version.says) || !strings.Contains(err.Error(), src.Path(db, "1")) {
			t.Errorf("%s: %v, want %q", what, err, version.says)
		}
	}
}

// testPartitionMarkers: lists of files name those in directories, and commits apply to their own directory.
func testPartitionMarkers(t *testing.T, p sourcetest.Place) {
	for _, name := range []string{"part-0", "day=1/part-0", "day=1/part-1", "day=2/part-0"} {
		p.Put(t, "m/1/"+name, []byte("x"))
	}
	src := p.Source(t)
	check := func(want string, left ...string) {
		t.Helper()
		l := must(source.List(t.Context(), src, "m", "1", false))(t)
		if want != "" || l.Incomplete != "" {
			if want == "" || !strings.Contains(l.Incomplete, want) {
				t.Errorf("incomplete: %q, want %q", l.Incomplete, want)
			}
			return
		}
		equal(t, "left out", l.LeftOut, left)
	}
	p.Put(t, "m/1/_SUCCESS", []byte(`{"filenames": ["s3a://b/x/m/1/day=1/part-0", "s3a://b/x/m/1/day=2/part-0"]}`))
	check("", "day=1/part-1", "part-0")
	p.Put(t, "m/1/_SUCCESS", []byte(`{"filenames": ["s3a://b/tmp/day=1/part-0", "s3a://b/tmp/day=2/part-0"]}`))
	check("", "day=1/part-1", "part-0")
	p.Put(t, "m/1/_SUCCESS", []byte(`{"filenames": ["s3a://b/x/m/1/day=3/part-0"]}`))
	check("day=3/part-0")
	p.Put(t, "m/1/_SUCCESS", nil)
	check("")
	p.Put(t, "m/1/day=1/_started_7", nil)
	check("day=1/_started_7")
	p.Put(t, "m/1/day=1/_committed_7", []byte(`{"added": ["part-1"], "removed": []}`))
	check("", "day=1/part-0")
	p.Put(t, "m/1/_committed_7", []byte(`{"added": ["day=2/part-0"], "removed": ["day=1/part-1"]}`))
	check("", "day=1/part-1", "part-0", "day=1/part-0")
	p.Put(t, "m/1/day=2/_committed_8", []byte(`{"added": ["part-0"`))
	check("day=2/_committed_8 is truncated")
}

// testOddMarkers: a marker that is a directory is an error of its version only.
func testOddMarkers(t *testing.T, p sourcetest.Place) {
	p.Put(t, "db/1/part-00000", []byte("x"))
	p.Put(t, "db/1/_SUCCESS/x", []byte("x"))
	p.Put(t, "db/2/part-00000", []byte("x"))
	p.Put(t, "db/2/_SUCCESS", nil)
	p.Put(t, "db/3/part-00000", []byte("x"))
	src, ctx := p.Source(t), t.Context()
	equal(t, "versions", must(source.Versions(ctx, src, "db"))(t), []string{"1", "2", "3"})
	if l, err := source.List(ctx, src, "db", "1", false); err == nil || !strings.Contains(err.Error(), "_SUCCESS") || !strings.Contains(err.Error(), "directory") {
		t.Errorf("_SUCCESS is a directory: %+v, %v", l, err)
	}
	equal(t, "with _SUCCESS", must(source.FindSuccess(ctx, src, "db", []string{"1", "2", "3"}))(t), "2")
	equal(t, "without _SUCCESS", must(source.FindSuccess(ctx, src, "db", []string{"1", "3"}))(t), "")
}

// tables are what the writers of tables leave in the directory of a table, by format.
var tables = map[string][]string{
	"Delta Lake":             {"part-00000.parquet", "_delta_log/00000000000000000000.json"},
	"Hudi":                   {"part-00000.parquet", ".hoodie/hoodie.properties"},
	"Spark's streaming sink": {"part-00000.parquet", "_spark_metadata/0"},
	"Iceberg":                {"data/00000-0.parquet", "metadata/00000-1b6a.metadata.json", "metadata/snap-1.avro"},
	"Paimon":                 {"bucket-0/data-1.parquet", "manifest/manifest-1-0", "schema/schema-0", "snapshot/snapshot-1", "snapshot/LATEST"},
	"Hive ACID":              {"000000_0", "base_0000002_v0000012/bucket_00000", "delete_delta_0000003_0000003_0000/bucket_00000", "delta_0000004_0000004_0000/_orc_acid_version"},
}

// more are further marks of formats.
var more = map[string][]string{
	"Iceberg/a catalog in files":   {"data/day=1/a.parquet", "metadata/version-hint.text", "metadata/v1.metadata.json"},
	"Iceberg/compressed":           {"data/a.parquet", "metadata/1.metadata.json.gz"},
	"Hive ACID/inserts":            {"delta_0000001_0000001_0000/000000_0"},
	"Hive ACID/overwritten":        {"base_0000001/000000_0"},
	"Hive ACID/Impala":             {"delta_0000001_0000001/8d40c65ff0a1c4fb-d1ea6e5900000000_1037356113_data.0.parq"},
	"Hive ACID/inserts of nothing": {"delta_0000001_0000001_0000/000000_0", "delta_0000002_0000002_0000/_nothing"},
}

// testTables: a directory that a table format owns is refused by name, whichever it is.
func testTables(t *testing.T, p sourcetest.Place) {
	all := map[string][]string{}
	for format, files := range tables {
		all[format] = files
	}
	for format, files := range more {
		all[format] = files
	}
	for name, files := range all {
		format, _, _ := strings.Cut(name, "/")
		db := strings.NewReplacer(" ", "-", "/", "-", "'", "").Replace(name)
		for _, file := range files {
			p.Put(t, db+"-itself/"+file, []byte("x"))
			p.Put(t, db+"-partition/1/day=1/city=x/"+file, []byte("x"))
			p.Put(t, db+"/1/"+file, []byte("x"))
			p.Put(t, db+"/2/part-00000", []byte("x"))
		}
		src, ctx := p.Source(t), t.Context()
		refused := func(what string, err error, place string) {
			t.Helper()
			if !errors.Is(err, source.ErrLayout) || !source.Lasting(err) || !strings.Contains(err.Error(), " makes it a table of "+format) || !strings.HasPrefix(err.Error(), place+": ") {
				t.Errorf("%s: %s: %v", name, what, err)
			}
		}
		_, err := source.Versions(ctx, src, db+"-itself")
		refused("the database", err, src.Path(db+"-itself", ""))
		_, err = source.List(ctx, src, db, "1", false)
		refused("a version", err, src.Path(db, "1"))
		_, err = source.List(ctx, src, db+"-partition", "1", false)
		refused("a partition", err, src.Path(db+"-partition", "1")+"/day=1/city=x")
		equal(t, name+": versions", must(source.Versions(ctx, src, db))(t), []string{"1", "2"})
		if l := must(source.List(ctx, src, db, "2", false))(t); len(l.Files) != 1 {
			t.Errorf("%s: the version beside it: %+v", name, l)
		}
	}
	must(source.Databases(t.Context(), p.Source(t)))(t)
}

// testTableAtRoot: the directory of the source itself is a table.
func testTableAtRoot(t *testing.T, p sourcetest.Place) {
	p.Put(t, "day=1/part-00000.parquet", []byte("x"))
	p.Put(t, "data/day=1/part-00000.parquet", []byte("x"))
	src, ctx := p.Source(t), t.Context()
	for _, file := range []string{"snapshot/snapshot-1", "metadata/v1.metadata.json", "base_0000001/bucket_00000", "_delta_log/0.json"} {
		equal(t, "databases without "+file, must(source.ListNames(ctx, src, ""))(t).Invalid, nil)
		p.Put(t, file, []byte("x"))
		if dbs, err := source.Databases(ctx, src); !errors.Is(err, source.ErrLayout) || len(dbs) > 0 {
			t.Errorf("%s: %q, %v", file, dbs, err)
		}
		p.Remove(t, file)
	}
}

// testNotTables: databases, versions and files with names of table formats that are no tables.
func testNotTables(t *testing.T, p sourcetest.Place) {
	for _, name := range []string{
		"metadata/1/part-0", "metadata/v1.metadata.json/part-0", "snapshot/snapshot-1/part-0", "delta_x/1/part-0", "base_0000001/1/part-0", "schema/1/schema-0",
		"db/metadata/part-0", "db/snapshot/part-0", "db/snapshot/metadata/notes.txt", "db/snapshot/schema/x",
		"db/base_0000001/part-0", "db/base_20260131/000000_0", "db/delta_0000001_0000002/part-0", "db/delta_20260101_20260131/000000_0", "db/manifest/part-0",
	} {
		p.Put(t, name, []byte("x"))
	}
	src, ctx := p.Source(t), t.Context()
	equal(t, "databases", must(source.Databases(ctx, src))(t), []string{"base_0000001", "db", "delta_x", "metadata", "schema", "snapshot"})
	for db, want := range map[string][]string{
		"metadata": {"1", "v1.metadata.json"}, "snapshot": {"snapshot-1"}, "delta_x": {"1"}, "base_0000001": {"1"}, "schema": {"1"},
		"db": {"base_0000001", "base_20260131", "delta_0000001_0000002", "delta_20260101_20260131", "manifest", "metadata", "snapshot"},
	} {
		equal(t, "versions of "+db, must(source.Versions(ctx, src, db))(t), want)
		for _, version := range want {
			if l := must(source.List(ctx, src, db, version, false))(t); len(l.Files) != 1 {
				t.Errorf("%s: %+v", path.Join(db, version), l)
			}
		}
	}
}

// testRemarks: what is in the source beside databases and versions is said.
func testRemarks(t *testing.T, p sourcetest.Place) {
	for _, name := range []string{"part-00000", "README", "_SUCCESS", ".x", "db/part-00000", "db/part-00001", "db/_SUCCESS", "db/_PIN", "db/1/part-00000", "db/lost+found/x",
		"lost+found/x/y", "days/day=1/part-00000", "days/day=2/part-00000", "good/1/part-00000"} {
		p.Put(t, name, []byte("x"))
	}
	src := p.Source(t)
	for db, want := range map[string][]string{
		"":     {`"lost+found" in the source is left out`, "files of the source that are in no database are not read (README, part-00000)"},
		"db":   {`"lost+found" in the source is left out`, "files of db that are in no version are not read (part-00000, part-00001)"},
		"days": {"versions of days are named as the directories of a partitioned table are (day=1, day=2)"},
		"good": nil,
	} {
		got := must(source.ListNames(t.Context(), src, db))(t).Remarks(db)
		if len(got) != len(want) {
			t.Fatalf("%q: %q, want %q", db, got, want)
		}
		for i := range want {
			if !strings.Contains(got[i], want[i]) {
				t.Errorf("%q: %q, want %q", db, got[i], want[i])
			}
		}
	}
}
