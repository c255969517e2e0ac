//go:build integration

package harness

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// The expectations must be consistent, or tests that use them prove nothing.
func TestFixturesAreWhole(t *testing.T) {
	for _, f := range Fixtures(t) {
		t.Run(f.Name, func(t *testing.T) {
			perFile, total := map[string]int{}, 0
			sorted, duplicates := true, false
			seen := map[string]bool{}
			var last Record
			for r := range f.Records(t) {
				if r.File == last.File && bytes.Compare(last.Key, r.Key) > 0 {
					sorted = false
				}
				if r.File < last.File {
					t.Errorf("records of %s after those of %s", r.File, last.File)
				}
				duplicates = duplicates || seen[string(r.Key)]
				seen[string(r.Key)] = true
				perFile[r.File]++
				total++
				last = r
			}
			if total != f.Meta.Records || sorted != f.Meta.Sorted || duplicates != f.Meta.Duplicates {
				t.Errorf("%d records, sorted %v, duplicates %v; meta says %+v", total, sorted, duplicates, f.Meta)
			}
			checkFiles(t, f, perFile)
		})
	}
}

func checkFiles(t *testing.T, f Fixture, perFile map[string]int) {
	t.Helper()
	if len(f.Meta.Names) != f.Meta.Files {
		t.Errorf("%d names of %d files", len(f.Meta.Names), f.Meta.Files)
	}
	for _, name := range f.Meta.Names {
		if st, err := os.Stat(filepath.Join(f.Dir, name)); err != nil || st.Size() == 0 {
			t.Errorf("%s: %v, %v", name, st, err)
		}
		delete(perFile, name)
	}
	if len(perFile) > 0 {
		t.Errorf("records of files that meta does not name: %v", perFile)
	}
	_, err := os.Stat(filepath.Join(f.Dir, "_SUCCESS"))
	if (err == nil) != f.Meta.Success {
		t.Errorf("_SUCCESS: %v, but meta says %v", err, f.Meta.Success)
	}
}

func TestFinalKeepsTheLast(t *testing.T) {
	f := FixtureByName(t, "duplicates-across")
	final := f.Final(t)
	if len(final) != 40 {
		t.Fatalf("%d keys, want 40", len(final))
	}
	want := map[string]string{}
	for r := range f.Records(t) {
		want[string(r.Key)] = string(r.Value)
	}
	for k, r := range final {
		if want[k] != string(r.Value) {
			t.Errorf("%s: %q, want %q", k, r.Value, want[k])
		}
	}
	for _, r := range FixtureByName(t, "sparkey-deletes").Final(t) {
		if r.Deleted {
			t.Errorf("%q is deleted and there", r.Key)
		}
	}
}

func TestHasValueByHash(t *testing.T) {
	var big Record
	for r := range FixtureByName(t, "big-block-gzip").Records(t) {
		if r.ValueLen > big.ValueLen {
			big = r
		}
	}
	if big.ValueLen != 5<<20 || big.Value != nil {
		t.Fatalf("big value of %d bytes, %d of them given", big.ValueLen, len(big.Value))
	}
	if big.HasValue(make([]byte, big.ValueLen)) {
		t.Error("zeros pass for the big value")
	}
}
