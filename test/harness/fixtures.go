package harness

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sequins/test/expect"
	"sequins/test/process"
)

// Fixture is one version of one db in testdata/fixtures, written by a real job, and its expected content.
type Fixture struct {
	Name string // name of the db
	Dir  string // absolute path of its only version
	Meta Meta

	expected string // path of the .jsonl or .jsonl.gz file
}

// Meta describes how a fixture was written. It comes from the program that wrote it, not from the files.
type Meta struct {
	Version     string   `json:"version"`
	Format      string   `json:"format"`      // sequencefile, mapfile, sparkey, avro, parquet
	Partitioner string   `json:"partitioner"` // partitioner of the files: string, hadoop, spark, cascading, or none
	Partitions  int      `json:"partitions"`  // one per file, except for Sparkey, where several logs may form one partition
	Fits        []string `json:"fits"`        // every partitioner that matches all records, in the order of the design's table
	Compression string   `json:"compression"` // NONE, RECORD, BLOCK; for Sparkey NONE, SNAPPY, ZSTD; for Avro and Parquet the name of the codec
	Codec       string   `json:"codec"`       // Java class; empty with NONE and for Sparkey
	KeyClass    string   `json:"keyClass"`    // empty unless SequenceFile
	ValueClass  string   `json:"valueClass"`
	KeyField    string   `json:"keyField"`   // Avro and Parquet: the key field to configure in [db.<name>]
	ValueField  string   `json:"valueField"` // the value field; empty for the whole record
	Files       int      `json:"files"`
	Names       []string `json:"names"` // data files in order, relative to Dir; "part-r-00000/data" for a MapFile
	Records     int      `json:"records"`
	Sorted      bool     `json:"sorted"`     // keys never descend bytewise within a file
	Duplicates  bool     `json:"duplicates"` // some key occurs more than once in the version
	Success     bool     `json:"success"`    // there is a _SUCCESS file
}

// Record is one record as it was passed to the file's writer.
type Record struct {
	File    string `json:"file"`
	Key     []byte `json:"key"`
	Deleted bool   `json:"deleted"` // Sparkey: the key was deleted; there is no value

	Value       []byte `json:"value"` // nil if only ValueLen and ValueSHA256 are known
	ValueLen    int    `json:"valueLen"`
	ValueSHA256 string `json:"valueSHA256"` // in lower-case hex, for values over 1 MiB
}

// HasValue reports whether got is the value of r.
func (r *Record) HasValue(got []byte) bool {
	if r.ValueSHA256 == "" {
		return bytes.Equal(got, r.Value)
	}
	sum := sha256.Sum256(got)
	return len(got) == r.ValueLen && hex.EncodeToString(sum[:]) == r.ValueSHA256
}

// FixturesDir returns testdata/fixtures: a source whose dbs are the fixtures.
func FixturesDir(t testing.TB) string {
	t.Helper()
	return filepath.Join(testdata(), "fixtures")
}

// testdata returns the module's testdata.
func testdata() string { return filepath.Join(process.Root(), "testdata") }

// Fixtures returns all fixtures, by name.
func Fixtures(t testing.TB) []Fixture {
	t.Helper()
	dir := FixturesDir(t)
	entries, err := os.ReadDir(dir)
	expect.NoError(t, err)
	var all []Fixture
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), "_") {
			all = append(all, open(t, dir, e.Name()))
		}
	}
	if len(all) == 0 {
		t.Fatalf("harness: no fixtures in %s", dir)
	}
	return all
}

// FixturesOf returns the fixtures of a format, of which there are at least five.
func FixturesOf(t testing.TB, format string) []Fixture {
	t.Helper()
	some := slices.DeleteFunc(Fixtures(t), func(f Fixture) bool { return f.Meta.Format != format })
	if len(some) < 5 {
		t.Fatalf("harness: %d fixtures of %s", len(some), format)
	}
	return some
}

// FixtureByName returns one fixture.
func FixtureByName(t testing.TB, name string) Fixture {
	t.Helper()
	all := Fixtures(t)
	i := slices.IndexFunc(all, func(f Fixture) bool { return f.Name == name })
	if i < 0 {
		t.Fatalf("harness: no fixture %q", name)
	}
	return all[i]
}

func open(t testing.TB, dir, name string) Fixture {
	t.Helper()
	base := filepath.Join(dir, "_expected", name)
	raw, err := os.ReadFile(base + ".meta.json")
	expect.NoError(t, err)
	f := Fixture{Name: name, expected: base + ".jsonl"}
	if err := json.Unmarshal(raw, &f.Meta); err != nil {
		t.Fatalf("harness: %s.meta.json: %v", base, err)
	}
	f.Dir = filepath.Join(dir, name, f.Meta.Version)
	if _, err := os.Stat(f.expected); err != nil {
		f.expected += ".gz"
	}
	return f
}

// Records yields every expected record in order, and fails the test if the list cannot be read. The caller may retain
// yielded records.
func (f Fixture) Records(t testing.TB) iter.Seq[Record] {
	return func(yield func(Record) bool) {
		t.Helper()
		file, err := os.Open(f.expected)
		expect.NoError(t, err)
		defer func() { _ = file.Close() }()
		var r io.Reader = bufio.NewReader(file)
		if strings.HasSuffix(f.expected, ".gz") {
			if r, err = gzip.NewReader(r); err != nil {
				t.Fatalf("harness: %s: %v", f.expected, err)
			}
		}
		if err := decode(r, yield); err != nil {
			t.Fatalf("harness: %s: %v", f.expected, err)
		}
	}
}

func decode(r io.Reader, yield func(Record) bool) error {
	d := json.NewDecoder(r)
	for i := 0; ; i++ {
		var rec Record
		if err := d.Decode(&rec); err == io.EOF {
			return nil
		} else if err != nil {
			return fmt.Errorf("record %d: %w", i, err)
		}
		if rec.ValueSHA256 == "" {
			rec.ValueLen = len(rec.Value)
		}
		if !yield(rec) {
			return nil
		}
	}
}

// Of yields the expected records of one data file.
func (f Fixture) Of(t testing.TB, file string) iter.Seq[Record] {
	return func(yield func(Record) bool) {
		for r := range f.Records(t) {
			if r.File == file && !yield(r) {
				return
			}
		}
	}
}

// Final returns the expected content of the version by key: the last record of the last file wins, and deleted keys are
// absent.
func (f Fixture) Final(t testing.TB) map[string]Record {
	t.Helper()
	m := make(map[string]Record, f.Meta.Records)
	for r := range f.Records(t) {
		if r.Deleted {
			delete(m, string(r.Key))
		} else {
			m[string(r.Key)] = r
		}
	}
	return m
}
