package parquet

import (
	"encoding/binary"
	"fmt"
	"io"
)

// tail is a file whose end is read once and kept, so that a small file is read with one request. It keeps the first
// read error.
type tail struct {
	r    io.ReaderAt
	size int64
	from int64 // where the kept end begins
	kept []byte
	err  error
}

const (
	Magic          = "PAR1" // at the start and the end of a file
	MagicEncrypted = "PARE" // of one with an encrypted footer
	keptTail       = 64 << 10
	// maxFooter is the maximum size of a footer, in bytes: about a million column chunks.
	maxFooter = 64 << 20
)

// footer reads the footer. It checks the length before it allocates.
func (t *tail) footer() ([]byte, error) {
	if t.size < int64(2*len(Magic)+4) {
		return nil, fmt.Errorf("a file of %d bytes is too short", t.size)
	}
	t.from = max(0, t.size-keptTail)
	kept := make([]byte, t.size-t.from)
	if err := t.readFull(kept, t.from); err != nil {
		return nil, err
	}
	t.kept = kept
	end := kept[len(kept)-8:]
	switch string(end[4:]) {
	case Magic:
	case MagicEncrypted:
		return nil, unsupported("the footer is encrypted")
	default:
		return nil, fmt.Errorf("the file does not end with %s", Magic)
	}
	n := int64(binary.LittleEndian.Uint32(end))
	if n > min(t.size-12, maxFooter) {
		return nil, fmt.Errorf("invalid footer length %d", n)
	}
	if n+8 <= int64(len(kept)) {
		return kept[int64(len(kept))-8-n : len(kept)-8], nil
	}
	b := make([]byte, n)
	return b, t.readFull(b, t.size-8-n)
}

func (t *tail) readFull(p []byte, off int64) error {
	n, err := t.ReadAt(p, off)
	if n == len(p) {
		return nil
	}
	if err == nil {
		err = io.EOF
	}
	return cut(err)
}

// cut makes the end of the file, where there must be more, io.ErrUnexpectedEOF.
func cut(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
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
