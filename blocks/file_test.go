package blocks

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sequins/test/blocktest"
	"sequins/test/expect"
)

// openMany opens n blocks with the given records in dir.
func openMany(t *testing.T, dir string, n int, records []record) []*Reader {
	t.Helper()
	b := buildBlock(t, records, WriterOptions{})
	readers := make([]*Reader, n)
	for i := range readers {
		path := filepath.Join(dir, fmt.Sprintf("%05d.block", i))
		expect.NoError(t, os.WriteFile(path, b, 0o644))
		var err error
		if readers[i], err = Open(path); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := readers[i].Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return readers
}

// TestSmallBlocksHaveNoFile: a small block is neither open nor mapped, and once it has been read needs no disk.
func TestSmallBlocksHaveNoFile(t *testing.T) {
	dir := t.TempDir()
	records := numbered(500)
	before := heldBytes.Load()
	r := openMany(t, dir, 1, records)[0]
	if n := blocktest.Descriptors(t, dir); n != 0 || r.data != nil {
		t.Errorf("%d descriptors, %d bytes mapped", n, len(r.data))
	}
	var s Scratch
	for range 2 {
		for _, rec := range records {
			if v, ok, err := r.Get(rec.key, &s); !ok || err != nil || string(v.Bytes()) != string(rec.value) {
				t.Fatal(ok, err)
			}
		}
	}
	if s.Reads() != 1 {
		t.Errorf("it was read %d times", s.Reads())
	}
	if n := heldBytes.Load() - before; n <= 0 || n > r.size {
		t.Errorf("%d bytes kept of %d", n, r.size)
	}
	if err := r.Close(); err != nil || heldBytes.Load() != before {
		t.Errorf("%d bytes kept after Close, %v", heldBytes.Load()-before, err)
	}
}

// TestReopenedFileIsTheSame: a block whose file was closed and is another one now, or has gone, is damaged.
func TestReopenedFileIsTheSame(t *testing.T) {
	records := makeRecords(rand.New(rand.NewPCG(42, 42)), blocktest.KeyShapes["hex"], 2000, 100)
	other := buildBlock(t, records[:1500], WriterOptions{})
	for name, change := range map[string]func(path string) error{
		"removed":  os.Remove,
		"replaced": func(path string) error { return errors.Join(os.Remove(path), os.WriteFile(path, other, 0o644)) },
		"cut":      func(path string) error { return os.Truncate(path, 5000) },
	} {
		readers := openMany(t, t.TempDir(), 2, records)
		expect.NoError(t, readers[0].file.Drop())
		expect.NoError(t, change(readers[0].name))
		var s Scratch
		if _, _, err := readers[0].Get(records[0].key, &s); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
		if _, ok, err := readers[1].Get(records[0].key, &s); !ok || err != nil {
			t.Errorf("%s: another block: %v, %v", name, ok, err)
		}
	}
}

// TestSetAsideIsReadable: a block that is set aside for one damaged page answers from the others, although its file was
// closed meanwhile, and after the partition has been loaded again.
func TestSetAsideIsReadable(t *testing.T) {
	for name, records := range map[string][]record{
		"small": numbered(500),
		"large": makeRecords(rand.New(rand.NewPCG(43, 43)), blocktest.KeyShapes["hex"], 2000, 100),
	} {
		intact := buildBlock(t, records, WriterOptions{})
		damaged := bytes.Clone(intact)
		damaged[8] ^= 1 // in the first page
		path := filepath.Join(t.TempDir(), "00000.block")
		expect.NoError(t, os.WriteFile(path, damaged, 0o644))
		r, err := Open(path)
		expect.NoError(t, err)
		expect.NoError(t, r.file.Drop())
		if n := blocktest.Descriptors(t, filepath.Dir(path)); n != 0 {
			t.Fatalf("%s: %d descriptors", name, n)
		}
		var scratch Scratch
		first, last := records[0], records[len(records)-1]
		get := func(rec record) ([]byte, error) {
			r.trusted.clearAll()
			expect.NoError(t, r.file.Drop())
			v, _, err := r.Get(rec.key, &scratch)
			return v.Bytes(), err
		}
		expect.NoError(t, os.Rename(path, path+CorruptSuffix))
		if _, err := get(first); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "page 0") {
			t.Errorf("%s: the damaged page: %v", name, err)
		}
		if v, err := get(last); err != nil || !bytes.Equal(v, last.value) {
			t.Errorf("%s: another page: %v", name, err)
		}
		expect.NoError(t, os.WriteFile(path, intact, 0o644))
		if v, err := get(last); err != nil || !bytes.Equal(v, last.value) {
			t.Errorf("%s: after the block was loaded again: %v", name, err)
		}
		expect.NoError(t, r.Close())
	}
}
