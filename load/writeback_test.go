package load

import (
	"bytes"
	"errors"
	"testing"

	"sequins/internal/fsys"
)

// slowDisk is a file that counts how often the disk was to begin.
type slowDisk struct {
	fsys.File
	content bytes.Buffer
	begun   int
	full    error
}

func (d *slowDisk) Write(p []byte) (int, error) {
	if d.full != nil {
		return 0, d.full
	}
	return d.content.Write(p)
}

// Fd is none that the kernel knows, which it says and nobody minds.
func (d *slowDisk) Fd() uintptr {
	d.begun++
	return 1 << 30
}

// The disk begins once for each step, whatever the pieces, and what is written stays what it is.
func TestWriteback(t *testing.T) {
	for _, piece := range []int{writebackStep / 3, writebackStep, 2*writebackStep + 1} {
		d := &slowDisk{}
		w := &writeback{File: d}
		p := bytes.Repeat([]byte("ab"), piece/2+1)[:piece]
		var all bytes.Buffer
		for all.Len() < 4*writebackStep {
			if n, err := w.Write(p); n != len(p) || err != nil {
				t.Fatal(n, err)
			}
			all.Write(p)
			if left := w.written - w.begun; left >= writebackStep || w.written != int64(all.Len()) {
				t.Fatalf("pieces of %d: %d bytes wait of %d", piece, left, w.written)
			}
		}
		if !bytes.Equal(d.content.Bytes(), all.Bytes()) {
			t.Errorf("pieces of %d: something else was written", piece)
		}
		if most := all.Len() / writebackStep; d.begun == 0 || d.begun > most {
			t.Errorf("pieces of %d: begun %d times for %d steps", piece, d.begun, most)
		}
	}
	full := errors.New("full")
	w := &writeback{File: &slowDisk{full: full}}
	if n, err := w.Write([]byte("x")); n != 0 || !errors.Is(err, full) || w.written != 0 {
		t.Error(n, err, w.written)
	}
}
