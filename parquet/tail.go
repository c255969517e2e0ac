package parquet

import (
	"encoding/binary"
	"fmt"
	"io"
)

// A tail is a file whose end is read once and kept, as the footer is read in several steps. It keeps the
// error that ended reading.
type tail struct {
	r    io.ReaderAt
	size int64
	from int64 // where the kept end begins
	kept []byte
	err  error
}

const (
	magic    = "PAR1"
	keptTail = 64 << 10
	// maxFooter is how large a footer may be, in bytes: about a million column chunks.
	maxFooter = 256 << 20
)

// check reads the end and looks at the footer's length before anyone believes it.
func (t *tail) check() error {
	if t.size < int64(2*len(magic)+4) {
		return fmt.Errorf("%d bytes are too few", t.size)
	}
	t.from = max(0, t.size-keptTail)
	kept := make([]byte, t.size-t.from)
	if _, err := t.ReadAt(kept, t.from); err != nil && err != io.EOF {
		return err
	}
	t.kept = kept
	end := kept[len(kept)-8:]
	if string(end[4:]) != magic {
		return fmt.Errorf("it does not end with %s", magic)
	}
	if n := int64(binary.LittleEndian.Uint32(end)); n > min(t.size-12, maxFooter) {
		return fmt.Errorf("its footer would have %d bytes", n)
	}
	return nil
}

func (t *tail) ReadAt(p []byte, off int64) (int, error) {
	if off >= t.from && t.kept != nil && off <= t.size {
		n := copy(p, t.kept[off-t.from:])
		if n < len(p) {
			return n, io.EOF
		}
		return n, nil
	}
	n, err := t.r.ReadAt(p, off)
	if err != nil && err != io.EOF {
		t.err = err
	}
	return n, err
}
