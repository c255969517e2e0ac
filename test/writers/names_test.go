//go:build integration

package writers

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sequins/input/avro"
	"sequins/internal/render"
	"sequins/test/expect"
	"sequins/test/harness"
)

// runJava runs a Java source file with Avro for Java.
func runJava(t *testing.T, file string, args ...string) {
	t.Helper()
	cmd, err := harness.Java(t.Context(), file, args...)
	expect.NoError(t, err)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", file, err, out)
	}
}

// Names that the specification of Avro does not allow are those that Avro for Java has written and reads: of reflection,
// BigQuery and Spark.
func TestAvroNames(t *testing.T) {
	dir, judged := t.TempDir(), t.TempDir()
	runJava(t, "Names.java", dir)
	files, err := filepath.Glob(filepath.Join(dir, "*.avro"))
	if err != nil || len(files) != 5 {
		t.Fatalf("%q, %v", files, err)
	}
	runJava(t, filepath.Join("..", "corpus", "Judge.java"), append([]string{judged}, files...)...)
	keys := map[string]string{"reflection": "user-id", "nested": "id", "bigquery": "user-id", "spark": "1st key", "plain": "ключ"}
	for i, path := range files {
		want, err := os.ReadFile(filepath.Join(judged, fmt.Sprint(i, ".ndjson")))
		expect.NoError(t, err)
		raw, err := os.ReadFile(path)
		expect.NoError(t, err)
		name := strings.TrimSuffix(filepath.Base(path), ".avro")
		r, err := avro.NewReader(bytes.NewReader(raw), name, render.Paths{Key: keys[name]})
		if err != nil {
			t.Error(err)
			continue
		}
		var got []byte
		for n := 0; r.Scan(); n++ {
			got = append(append(got, r.Value()...), '\n')
			if key := fmt.Sprint("id ", n); string(r.Key()) != key {
				t.Errorf("%s: the key is %q, want %q", name, r.Key(), key)
			}
		}
		if r.Err() != nil || !bytes.Equal(got, want) || !slices.Contains(r.Fields(), keys[name]) {
			t.Errorf("%s: %v\n got %.300s\nwant %.300s", name, r.Err(), got, want)
		}
	}
}
