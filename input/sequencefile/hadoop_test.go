package sequencefile

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sequins/test/expect"
	"sequins/test/harness"
	"sequins/test/sequencefiles"
)

// TestHadoop reads every file that real Hadoop jobs wrote, and compares with what they wrote into it.
func TestHadoop(t *testing.T) {
	files := 0
	for _, f := range harness.Fixtures(t) {
		if f.Meta.KeyClass == "" { // not a SequenceFile
			continue
		}
		t.Run(f.Name, func(t *testing.T) {
			expected := map[string][]harness.Record{}
			for r := range f.Records(t) {
				expected[r.File] = append(expected[r.File], r)
			}
			for _, name := range f.Meta.Names {
				file, err := os.ReadFile(filepath.Join(f.Dir, name))
				expect.NoError(t, err)
				readFixture(t, name, file, f.Meta, expected[name])
				files++
			}
		})
	}
	if files < 100 {
		t.Errorf("only %d files: fixtures are missing", files)
	}
}

// readFixture compares a file with what it should hold.
func readFixture(t *testing.T, name string, file []byte, meta harness.Meta, want []harness.Record) {
	t.Helper()
	r, err := NewReader(bytes.NewReader(file), name)
	expect.NoError(t, err)
	defer r.Close()
	h := r.Header()
	if h.Compression.String() != meta.Compression || h.Codec != meta.Codec || h.KeyClass != meta.KeyClass || h.ValueClass != meta.ValueClass {
		t.Errorf("%s: header %+v, want %+v", name, h, meta)
	}
	for i := range want {
		if !r.Scan() {
			t.Fatalf("%s: record %d of %d is missing, error %v", name, i, len(want), r.Err())
		}
		if !bytes.Equal(r.Key(), want[i].Key) || !want[i].HasValue(r.Value()) {
			t.Fatalf("%s: record %d is %v, want %.80q", name, i, record{r.Key(), r.Value()}, want[i].Key)
		}
	}
	if r.Scan() || r.Err() != nil {
		t.Fatalf("%s: a record too many, or %v", name, r.Err())
	}
}

// TestHadoopFeatures checks that the fixtures contain the features that they are meant to test.
func TestHadoopFeatures(t *testing.T) {
	modes := map[string]bool{}
	versions := map[int]bool{}
	metadata := false
	for _, f := range harness.Fixtures(t) {
		if f.Meta.KeyClass == "" { // not a SequenceFile
			continue
		}
		for _, name := range f.Meta.Names {
			file, err := os.Open(filepath.Join(f.Dir, name))
			expect.NoError(t, err)
			r, err := NewReader(file, name)
			expect.NoError(t, err)
			h := r.Header()
			r.Close()
			file.Close()
			modes[modeName(sequencefiles.WriterOptions{Compression: sequencefiles.Compression(h.Compression), Codec: h.Codec})] = true
			versions[h.Version] = true
			metadata = metadata || len(h.Metadata) > 0
		}
	}
	eachMode(t, func(t *testing.T, opts sequencefiles.WriterOptions) {
		if !modes[modeName(opts)] {
			t.Errorf("no file of %s among the fixtures", modeName(opts))
		}
	})
	if !versions[4] || !versions[5] || !versions[6] || !metadata {
		t.Errorf("versions %v, metadata %v", versions, metadata)
	}
}

// TestHadoopTruncated cuts real files off at many places.
func TestHadoopTruncated(t *testing.T) {
	for _, f := range harness.Fixtures(t) {
		if f.Meta.KeyClass == "" || strings.HasPrefix(f.Name, "big-") {
			continue
		}
		file, err := os.ReadFile(filepath.Join(f.Dir, f.Meta.Names[0]))
		expect.NoError(t, err)
		want, err := readFile(file)
		expect.NoError(t, err)
		for n := 0; n < len(file); n += 1 + len(file)/97 {
			got, err := readFile(file[:n])
			if len(got) > len(want) || sameRecords(got, want[:len(got)]) != "" {
				t.Fatalf("%s, cut at %d: wrong records", f.Name, n)
			}
			if err != nil {
				wantCorrupt(t, err)
			}
		}
	}
}
