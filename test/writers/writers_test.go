//go:build integration

package writers

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sequins/input/avro"
	"sequins/input/parquet"
	"sequins/internal/render"
	"sequins/test/expect"
	"sequins/test/process"
	"sequins/test/venv"
)

var update = flag.Bool("update", false, "write the table of writers in docs/DATA.md anew")

// A file is a line of the manifest.
type file struct {
	Writer, Variant, Codec, File, Key string
	Reads                             bool   // false if it must be an error
	path                              string // of the file
}

// records is the reader of either format.
type records interface {
	Scan() bool
	Value() []byte
	Err() error
}

// What other programs write is read as they read it themselves, or is an error that says why.
func TestWriters(t *testing.T) {
	dir := t.TempDir()
	t.Run("write", func(t *testing.T) { // side by side: neither has work for two cores
		t.Run("python", func(t *testing.T) {
			t.Parallel()
			process.OutputOf(t, venv.Python(t, "requirements.txt"), "write.py", dir)
		})
		t.Run("Spark", func(t *testing.T) {
			t.Parallel()
			process.OutputOf(t, venv.Python(t, "requirements.txt"), "spark.py", sparkDir(t, "spark"))
		})
	})
	outcomes := map[string]*outcome{} // by writer
	var order []string
	for _, f := range slices.Concat(manifest(t, dir, 150), manifest(t, sparkDir(t, "spark"), 60)) {
		reason, err := compare(f.path, f)
		if err != nil {
			t.Errorf("%s, %s, %s (%s): %v", f.Writer, f.Variant, f.Codec, f.File, err)
		}
		if reason == "" && !f.Reads {
			t.Errorf("%s: it is read, and must not be", f.File)
		}
		if outcomes[f.Writer] == nil {
			order, outcomes[f.Writer] = append(order, f.Writer), &outcome{variants: map[string]bool{}}
		}
		outcomes[f.Writer].add(f, reason)
	}
	var table strings.Builder
	for _, writer := range order {
		o := outcomes[writer]
		fmt.Fprintf(&table, "| %s | %d | %s | %s |\n", writer, len(o.variants), strings.Join(o.exact, ", "), strings.Join(o.failed, "; "))
	}
	golden(t, table.String())
}

// manifest returns the files of a directory, at least atLeast.
func manifest(t *testing.T, dir string, atLeast int) (files []file) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, "manifest.ndjson"))
	expect.NoError(t, err)
	for line := range bytes.Lines(raw) {
		var f file
		expect.NoError(t, json.Unmarshal(line, &f))
		f.path = filepath.Join(dir, f.File)
		files = append(files, f)
	}
	if len(files) < atLeast {
		t.Fatalf("%d files", len(files))
	}
	return files
}

// compare reads a file. reason is why it cannot be read; err is a difference in its values.
func compare(path string, f file) (reason string, err error) {
	in, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer in.Close()
	r, err := open(in, f)
	if err != nil {
		return explain(err)
	}
	expected, err := os.Open(path + ".ndjson")
	if err != nil {
		return "", err
	}
	defer expected.Close()
	lines := bufio.NewScanner(expected)
	lines.Buffer(nil, 1<<20)
	n := 0
	for ; r.Scan(); n++ {
		if !lines.Scan() {
			return "", fmt.Errorf("row %d: %s, and there are only %d", n, r.Value(), n)
		}
		if !bytes.Equal(r.Value(), lines.Bytes()) {
			return "", fmt.Errorf("row %d:\n got %s\nwant %s", n, r.Value(), lines.Bytes())
		}
	}
	if r.Err() != nil {
		return explain(r.Err())
	}
	if lines.Scan() || n == 0 {
		return "", fmt.Errorf("%d rows, and there is another: %s", n, lines.Bytes())
	}
	return "", lines.Err()
}

func open(in *os.File, f file) (records, error) {
	paths := render.Paths{Key: f.Key}
	if strings.HasSuffix(f.File, ".avro") {
		return avro.NewReader(in, f.File, paths)
	}
	info, err := in.Stat()
	if err != nil {
		return nil, err
	}
	return parquet.NewReader(in, info.Size(), f.File, paths)
}

var place = regexp.MustCompile(`.*(corrupt|unsupported) \w+ file: |the page at \d+: `)

// explain returns the reason of a reader's error, which must be that a feature is not supported.
func explain(err error) (string, error) {
	reason := place.ReplaceAllString(err.Error(), "")
	if errors.Is(err, parquet.ErrCorrupt) && !strings.Contains(err.Error(), "unsupported Parquet file") {
		return reason, err
	}
	return reason, nil
}

// An outcome is what is known of the files of one writer.
type outcome struct {
	variants map[string]bool // that are read exactly with one codec at least
	exact    []string        // the codecs of these
	failed   []string        // what cannot be read, with the reason
}

// add adds a file that is read exactly, or that cannot be read for a reason.
func (o *outcome) add(f file, reason string) {
	if reason != "" {
		o.failed = append(o.failed, f.Variant+", "+f.Codec+": "+reason)
		return
	}
	o.variants[f.Variant] = true
	if codec := strings.ToLower(f.Codec); !slices.Contains(o.exact, codec) {
		o.exact = append(o.exact, codec)
	}
}

// golden compares the table with the one in docs/DATA.md.
func golden(t *testing.T, table string) {
	t.Helper()
	name := filepath.Join(process.Root(), "docs", "DATA.md")
	page, err := os.ReadFile(name)
	expect.NoError(t, err)
	const begin = "\n| writer | variants | exact with | errors |\n|---|---|---|---|\n"
	before, rest, ok := strings.Cut(string(page), begin)
	_, after, ended := strings.Cut(rest, "\n\n")
	if !ok || !ended {
		t.Fatalf("%s has no table of writers", name)
	}
	want := before + begin + table + "\n" + after
	if *update {
		expect.NoError(t, os.WriteFile(name, []byte(want), 0o644))
		return
	}
	if string(page) != want {
		t.Errorf("%s is not what was found; go test -tags integration ./test/writers -update writes it:\n%s", name, table)
	}
}
