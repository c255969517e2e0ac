package load

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"sequins/input/avro"
	"sequins/input/parquet"
	"sequins/input/sequencefile"
	"sequins/internal/render"
	"sequins/source"
	"sequins/test/expect"
	"sequins/test/harness"
	"sequins/test/sequencefiles"
)

// fixtureFile is the first file of a fixture.
func fixtureFile(t *testing.T, name string) []byte {
	t.Helper()
	f := harness.FixtureByName(t, name)
	return check(os.ReadFile(filepath.Join(f.Dir, f.Meta.Names[0])))(t)
}

// A version's format is told by what is in its files, and is the same in all of them.
func TestFormats(t *testing.T) {
	seq := sequenceFile(t, []rec{{key: "a"}}, sequencefiles.WriterOptions{})
	av, pq := fixtureFile(t, "avro-deflate"), fixtureFile(t, "parquet-snappy")
	encrypted := bytes.ReplaceAll(pq, []byte(parquet.Magic), []byte(parquet.MagicEncrypted))
	id := Fields{Key: "id"}
	text := sequenceFile(t, []rec{{key: "b"}}, sequencefiles.WriterOptions{KeyClass: sequencefiles.Text, ValueClass: sequencefiles.Text})
	damaged := bytes.Replace(text, []byte("io.Text"), []byte("in.Text"), 1) // the class of the keys
	tests := map[string]struct {
		files  map[string][]byte
		fields Fields
		format string // "" for an error
		is     error
		says   []string
	}{
		"avro, whatever its name":    {map[string][]byte{"part-0": av}, id, FormatAvro, nil, nil},
		"parquet, whatever its name": {map[string][]byte{"part-0.avro": pq}, id, FormatParquet, nil, nil},
		"an encrypted parquet":       {map[string][]byte{"part-0": encrypted, "part-1": encrypted}, id, "", parquet.ErrCorrupt, []string{"/part-", "the footer is encrypted"}},
		"avro and parquet":           {map[string][]byte{"part-0": av, "part-1": pq}, id, "", ErrMixed, []string{"part-0 (avro)", "part-1 (parquet)"}},
		"parquet and a SequenceFile": {map[string][]byte{"part-0": pq, "part-1": seq}, id, "", ErrMixed, []string{"part-0 (parquet)", "part-1 (sequencefile)"}},
		"Text and BytesWritable":     {map[string][]byte{"part-0": seq, "part-1": text}, Fields{}, FormatSequenceFile, nil, nil},
		"a class nobody knows":       {map[string][]byte{"part-0": damaged}, Fields{}, FormatSequenceFile, nil, nil},
		"Text and another class":     {map[string][]byte{"part-0": text, "part-1": damaged}, Fields{}, "", ErrMixed, []string{"part-0", "part-1", `"org.apache.hadoop.in.Text"`, "keys are"}},
		"no key for avro":            {map[string][]byte{"part-0": av, "part-1": av}, Fields{}, "", render.ErrField, []string{"/part-", "id, n, big"}},
		"no key for parquet":         {map[string][]byte{"part-0": pq, "part-1": pq}, Fields{}, "", render.ErrField, []string{"/part-", "id, n, big"}},
		"no such field":              {map[string][]byte{"part-0": pq, "part-1": pq}, Fields{Key: "di"}, "", render.ErrField, []string{"/part-", `"di"`}},
		"avro and an alien":          {map[string][]byte{"part-0": av, "part-1": []byte("Hello, reader.")}, id, "", avro.ErrCorrupt, []string{"part-1", notData}},
		"parquet and an alien":       {map[string][]byte{"part-0": pq, "part-1": []byte("Hello, reader.")}, id, "", parquet.ErrCorrupt, []string{"part-1", notData}},
		"parquet and a long alien":   {map[string][]byte{"part-0": pq, "part-1": bytes.Repeat([]byte("Hello, reader.\n"), 1000)}, id, "", parquet.ErrCorrupt, []string{"part-1", notData}},
		"a cut off parquet":          {map[string][]byte{"part-0": pq, "part-1": pq[:len(pq)-1]}, id, "", parquet.ErrCorrupt, []string{"part-1"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			for name, content := range tt.files {
				w.put(name, content)
			}
			plan, err := w.plan(Options{Fields: tt.fields})
			if tt.format != "" {
				if err != nil || plan.Format != tt.format {
					t.Errorf("%+v, %v; want %s", plan, err, tt.format)
				}
				return
			}
			if !errors.Is(err, tt.is) {
				t.Fatalf("%v is not %v", err, tt.is)
			}
			for _, s := range tt.says {
				if !strings.Contains(err.Error(), s) {
					t.Errorf("%v does not name %s", err, s)
				}
			}
		})
	}
}

// Of a version with more files than are looked at, one of another format is found when it is read.
func TestMixedAmongMany(t *testing.T) {
	w := newWorld(t)
	seq := sequenceFile(t, []rec{{key: "a"}}, sequencefiles.WriterOptions{})
	for i := range 2 * sampleFiles {
		w.put("part-"+string(rune('A'+i)), seq)
	}
	w.put("part-"+string(rune('A'+2*sampleFiles-1)), fixtureFile(t, "avro-deflate"))
	l := newLoader(w.src, w.store, nil, Options{Partitioner: "string"})
	plan := check(l.Plan(t.Context(), "db", "1"))(t)
	err := l.Load(t.Context(), plan, []int{0})
	if !errors.Is(err, ErrMixed) || !strings.Contains(err.Error(), "part-A (sequencefile)") || !strings.Contains(err.Error(), "(avro)") {
		t.Error(err)
	}
}

// Blocks with other fields in them are of another input.
func TestFieldsArePartOfTheInput(t *testing.T) {
	w := newWorld(t)
	w.put("part-0", fixtureFile(t, "avro-deflate"))
	plans := map[string]Fields{}
	for _, f := range []Fields{{Key: "id"}, {Key: "n"}, {Key: "id", Value: "n"}, {Key: "idn"}} {
		m := check(newLoader(w.src, w.store, nil, Options{Fields: f, AllowEmpty: true}).Plan(t.Context(), "db", "1"))(t).Manifest() // without a look for records
		if other, found := plans[m.Input]; found {
			t.Errorf("%+v and %+v are both of %s", f, other, m.Input)
		}
		plans[m.Input] = f
	}
}

// rangedOf reads content, and counts how often it is opened.
func rangedOf(content []byte, listed int64) (r *RangedFile, opened, open *int) {
	opened, open = new(int), new(int)
	r = &RangedFile{size: listed, path: "f"}
	r.open = openFunc(content, opened, open)
	return r, opened, open
}

func TestRanged(t *testing.T) {
	content := make([]byte, 1<<20)
	for i := range content {
		content[i] = byte(i * i >> 7)
	}
	r, opened, open := rangedOf(content, int64(len(content)))
	read := func(off, n int64) {
		t.Helper()
		p := make([]byte, n)
		got, err := r.ReadAt(p, off)
		want := content[min(off, int64(len(content))):min(off+n, int64(len(content)))]
		if !bytes.Equal(p[:got], want) || (err == io.EOF) != (off+n > int64(len(content))) || err != nil && err != io.EOF {
			t.Errorf("%d bytes at %d: %d, %v", n, off, got, err)
		}
	}
	for i := range int64(50) { // two columns, read in turn
		read(i*1000, 1000)
		read(500_000+i*2000, 2000)
	}
	if *opened != 2 {
		t.Errorf("opened %d times for two places", *opened)
	}
	read(50_000+maxGap, 10) // passes over little
	if *opened != 2 {
		t.Error("opened anew for a small gap")
	}
	read(0, 10)
	read(int64(len(content))-5, 5)
	read(int64(len(content))-5, 9)
	for i := range int64(2 * maxStreams) {
		read(i*7, 1<<17)
	}
	if *open > maxStreams {
		t.Errorf("%d are open", *open)
	}
	if err := r.Close(); err != nil || *open != 0 {
		t.Errorf("%d are open in the end: %v", *open, err)
	}
}

// A file that is longer or shorter than it was listed is not the one that was listed.
func TestRangedChanged(t *testing.T) {
	content := make([]byte, 1000)
	for _, listed := range []int64{999, 1001, 2000} {
		r, _, _ := rangedOf(content, listed)
		if _, err := r.ReadAt(make([]byte, 100), listed-100); !errors.Is(err, source.ErrChanged) {
			t.Errorf("listed with %d: %v", listed, err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	broken := errors.New("the line is cut")
	r, _, _ := rangedOf(content, 1000)
	r.open = openReader(iotest.ErrReader(broken))
	if _, err := r.ReadAt(make([]byte, 100), 0); !errors.Is(err, broken) {
		t.Error(err)
	}
}

type openCounter struct {
	io.Reader
	open *int
}

func (c openCounter) Close() error {
	*c.open--
	return nil
}

func openFunc(content []byte, opened, open *int) func(int64) (io.ReadCloser, error) {
	return func(offset int64) (io.ReadCloser, error) {
		*opened++
		*open++
		return openCounter{bytes.NewReader(content[min(offset, int64(len(content))):]), open}, nil
	}
}

func openReader(r io.Reader) func(int64) (io.ReadCloser, error) {
	return func(int64) (io.ReadCloser, error) { return io.NopCloser(r), nil }
}

// A version of files of another format is an error that says so, of the first of them.
func TestUnknownFormat(t *testing.T) {
	w := newWorld(t)
	dir := filepath.Join(w.root, "db", "1")
	expect.NoError(t, os.MkdirAll(dir, 0o755))
	for i, content := range []string{"", "id,name\n1,x\n", "ORC", "{}"} {
		expect.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("part-%05d", i)), []byte(content), 0o644))
	}
	for range 5 {
		_, err := w.plan(Options{})
		if !errors.Is(err, ErrUnknown) || !Faulty(err) || !strings.Contains(err.Error(), `part-00001: the format is not one of`) || !strings.Contains(err.Error(), `at offset 0 it begins with "id,n"; `+notData) {
			t.Fatal(err)
		}
	}
}

// Of several damaged files, the plan names the first one at each attempt.
func TestFirstFault(t *testing.T) {
	w := newWorld(t)
	for i := range sampleFiles {
		records := []rec{{key: fmt.Sprint("a", i)}, {key: fmt.Sprint("b", i)}}
		if i > 2 {
			records = append(records, rec{key: strings.Repeat("x", 1+i)})
		}
		whole := sequenceFile(t, records, sequencefiles.WriterOptions{})
		w.put(fmt.Sprintf("part-r-%05d", i), whole[:len(whole)-i/3])
	}
	for range 50 {
		_, err := newLoader(w.src, w.store, nil, Options{}).Plan(t.Context(), "db", "1")
		if !errors.Is(err, sequencefile.ErrCorrupt) || !strings.Contains(err.Error(), "part-r-00003") {
			t.Fatal(err)
		}
	}
}
