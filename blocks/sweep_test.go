package blocks

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestSweepPauses holds a sweep to a pause every few megabytes: requests wait that long for it. When a pause says
// so, it ends.
func TestSweepPauses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "b.block")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w, err := NewWriter(f, WriterOptions{TempDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	const records = 30_000
	value := make([]byte, 1000)
	for i := range records {
		if err := w.Add(benchKey(nil, i), value); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	r, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var s Scratch
	for i := range records {
		if _, ok, err := r.Get(benchKey(nil, i), &s); !ok || err != nil {
			t.Fatal(i, ok, err)
		}
	}
	pauses, enough := 0, errors.New("enough")
	pause := func(time.Duration) error { pauses++; return nil }
	if err := r.Sweep(pause); err != nil || pauses < records/5000 {
		t.Errorf("%d pauses in %d bytes, %v", pauses, r.Size(), err)
	}
	pauses = 0
	if err := r.Sweep(func(time.Duration) error { pauses++; return enough }); !errors.Is(err, enough) || pauses != 1 {
		t.Errorf("%d pauses, %v", pauses, err)
	}
}
