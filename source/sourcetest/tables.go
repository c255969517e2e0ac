package sourcetest

import (
	"errors"
	"path"
	"strings"
	"testing"

	"sequins/source"
)

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
func testTables(t *testing.T, p Place) {
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
func testTableAtRoot(t *testing.T, p Place) {
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
func testNotTables(t *testing.T, p Place) {
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
func testRemarks(t *testing.T, p Place) {
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
