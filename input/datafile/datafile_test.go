package datafile_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sequins/input/datafile"
	"sequins/input/datafile/datafiletest"
)

func open(t *testing.T, path string) datafile.File {
	t.Helper()
	at, err := datafile.Local(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := datafile.Open(at, datafile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// The bytes that verify counts are the sizes of the files.
func TestVerifyCountsItsBytes(t *testing.T) {
	dir := t.TempDir()
	for name, kind := range map[string]datafile.Kind{"00000.block": datafile.Block, "part-00000": datafile.SequenceFile, "part-00001.spl": datafile.SparkeyLog} {
		datafiletest.Write(t, kind, dir+"/"+name, datafiletest.Awkward...)
		f, done := open(t, dir+"/"+name), int64(0)
		if _, err := f.Verify(t.Context(), func(bytes int64) { done += bytes }); err != nil || f.Kind() != kind {
			t.Fatal(f.Kind(), err)
		}
		// Of a block, index, filter and footer were read when it was opened.
		if done < f.Size()/2 || done > f.Size() || kind != datafile.Block && done != f.Size() {
			t.Errorf("%s: %d of %d bytes", name, done, f.Size())
		}
	}
}

// A Parquet file with an encrypted footer is one, and is refused for that.
func TestEncryptedParquet(t *testing.T) {
	path := filepath.Join(t.TempDir(), "part-0")
	if err := os.WriteFile(path, []byte("PARE, and what nobody can read\x10\x00\x00\x00PARE"), 0o600); err != nil {
		t.Fatal(err)
	}
	at, err := datafile.Local(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := datafile.Open(at, datafile.Options{}); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "the footer is encrypted") {
		t.Error(err)
	}
}

// The partition of a Sparkey log is that of a load, whatever else is in the name.
func TestPlaceOfSparkeyLogs(t *testing.T) {
	dir := t.TempDir()
	placed := map[string]int{"20260131-part-00000.spl": 0, "20260131-part-00002.spl": 2, "x9.spl": 9}
	for name := range placed {
		datafiletest.Write(t, datafile.SparkeyLog, filepath.Join(dir, name))
	}
	if err := os.WriteFile(filepath.Join(dir, "20260131-part-00000.spi"), []byte("an index"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range placed {
		f := open(t, filepath.Join(dir, name))
		if index, n, known := f.Place(); index != want || n != 10 || !known || f.Unloadable() != "" {
			t.Errorf("%s: file %d of %d, %v, %q", name, index, n, known, f.Unloadable())
		}
	}
	for name, want := range map[string]string{"20260131.spl": "20260131 is taken", "log": "named *.spl", "log.spl": "no number"} {
		path := filepath.Join(dir, "other", name)
		datafiletest.Write(t, datafile.SparkeyLog, path)
		f := open(t, path)
		if _, _, known := f.Place(); known || !strings.Contains(f.Unloadable(), want) {
			t.Errorf("%s: known %v, %q; want %q", name, known, f.Unloadable(), want)
		}
	}
}

// A file of 0 bytes has no records, as in a load; other files of 0 bytes are not data.
func TestFileOfZeroBytes(t *testing.T) {
	dir := t.TempDir()
	for name, want := range map[string]datafile.Kind{"part-00000": datafile.Empty, "a.parquet": datafile.Empty, "a.spi": datafile.Unknown, "0.block": datafile.Block} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		at, err := datafile.Local(path)
		if err != nil {
			t.Fatal(err)
		}
		if kind, err := at.Sniff(); kind != want || err != nil {
			t.Errorf("%s: %q, %v", name, kind, err)
		}
		if want == datafile.Empty {
			f := open(t, path)
			if n, err := f.Verify(t.Context(), func(int64) {}); n != 0 || err != nil || f.Describe() != nil || f.Next() {
				t.Errorf("%s: %d records, %v", name, n, err)
			}
		}
	}
}
