//go:build integration

package harness

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"sequins/test/expect"
)

var update = flag.Bool("update", false, "write all of testdata/fixtures anew")

// The program that wrote the fixtures still writes the same records into the same partitions. (The files differ in
// their random sync markers.) With -update it replaces the fixtures.
func TestFixturesAreWrittenAgain(t *testing.T) {
	h := running(t)
	committed := FixturesDir(t)
	if *update {
		h.Do(t, "fixtures out="+committed)
		h.Do(t, "vectors out="+filepath.Join(committed, "_vectors", "partitioners.json"))
		return
	}
	dir := t.TempDir()
	h.Do(t, "vectors out="+filepath.Join(dir, "_vectors", "partitioners.json"))
	for _, prefix := range []string{"cut-", "sparkey-", "mapfile-", "avro-", "parquet-", "randomised-"} {
		h.Do(t, "fixtures out="+dir+" only="+prefix)
	}
	n := 0
	for _, pattern := range []string{"_expected/*", "_vectors/*"} {
		files, err := filepath.Glob(filepath.Join(dir, filepath.FromSlash(pattern)))
		expect.NoError(t, err)
		for _, f := range files {
			n++
			rel, err := filepath.Rel(dir, f)
			expect.NoError(t, err)
			sameFile(t, f, filepath.Join(committed, rel))
		}
	}
	if n < 40 {
		t.Errorf("%d files compared", n)
	}
}

func sameFile(t *testing.T, got, want string) {
	t.Helper()
	a, err := os.ReadFile(got)
	expect.NoError(t, err)
	b, err := os.ReadFile(want)
	expect.NoError(t, err)
	if !bytes.Equal(a, b) {
		t.Errorf("%s is not what is written today: run go test -tags integration ./test/harness -run AreWrittenAgain -update", want)
	}
}
