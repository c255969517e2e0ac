//go:build integration

package harness

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"sequins/input/sequencefile"
)

// Every SequenceFile written by Hadoop is read: each codec, compression, class, header version and shape.
func TestFixturesAreRead(t *testing.T) {
	read := 0
	for _, f := range Fixtures(t) {
		if f.Meta.KeyClass == "" { // not a SequenceFile
			continue
		}
		for _, name := range f.Meta.Names {
			t.Run(f.Name+"/"+name, func(t *testing.T) { read += readFixture(t, f, name) })
		}
	}
	if read < 10_000 {
		t.Errorf("only %d records in all", read)
	}
}

func readFixture(t *testing.T, f Fixture, name string) (n int) {
	file, err := os.Open(filepath.Join(f.Dir, name))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	r, err := sequencefile.NewReader(file, name)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if h := r.Header(); h.KeyClass != f.Meta.KeyClass || h.ValueClass != f.Meta.ValueClass {
		t.Errorf("classes %s and %s, want %s and %s", h.KeyClass, h.ValueClass, f.Meta.KeyClass, f.Meta.ValueClass)
	}
	for want := range f.Of(t, name) {
		if !r.Scan() {
			t.Fatalf("ends before %q: %v", want.Key, r.Err())
		}
		if !bytes.Equal(r.Key(), want.Key) || !want.HasValue(r.Value()) {
			t.Fatalf("at %d: key %q with %d bytes, want %q with %d", r.Offset(), r.Key(), len(r.Value()), want.Key, want.ValueLen)
		}
		n++
	}
	if r.Scan() || r.Err() != nil {
		t.Fatalf("more than expected: %q, %v", r.Key(), r.Err())
	}
	return n
}
