package load

import (
	"bytes"
	"errors"
	"testing"

	"sequins/internal/fsys"
	"sequins/internal/pagecache"
)

// slowDisk is a file whose descriptor the kernel does not know, which nobody minds.
type slowDisk struct {
	fsys.File
	content bytes.Buffer
	full    error
}

func (d *slowDisk) Write(p []byte) (int, error) {
	if d.full != nil {
		return 0, d.full
	}
	return d.content.Write(p)
}

func (d *slowDisk) Fd() uintptr { return 1 << 30 }

// What is written stays what it is, whatever the pieces.
func TestWriteback(t *testing.T) {
	for _, piece := range []int{pagecache.Step / 3, pagecache.Step, 2*pagecache.Step + 1} {
		d := &slowDisk{}
		w := newWriteback(d)
		p := bytes.Repeat([]byte("ab"), piece/2+1)[:piece]
		var all bytes.Buffer
		for all.Len() < 4*pagecache.Step {
			if n, err := w.Write(p); n != len(p) || err != nil {
				t.Fatal(n, err)
			}
			all.Write(p)
		}
		if !bytes.Equal(d.content.Bytes(), all.Bytes()) {
			t.Errorf("pieces of %d: something else was written", piece)
		}
	}
	full := errors.New("full")
	w := newWriteback(&slowDisk{full: full})
	if n, err := w.Write([]byte("x")); n != 0 || !errors.Is(err, full) || w.written != 0 {
		t.Error(n, err, w.written)
	}
}
