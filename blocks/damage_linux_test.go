package blocks

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"syscall"
	"testing"

	"sequins/test/blocktest"
	"sequins/test/expect"
)

// failingAt is a file whose reads fail while err is set.
type failingAt struct {
	io.ReaderAt
	err error
}

func (f *failingAt) ReadAt(p []byte, off int64) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	return f.ReaderAt.ReadAt(p, off)
}

// What a disk or a file system says of data that it cannot read is damage of the block; what the process itself lacks
// is not.
func TestUnreadableIsDamage(t *testing.T) {
	records := makeRecords(rand.New(rand.NewPCG(7, 7)), blocktest.KeyShapes["hex"], 100, 20)
	b := buildBlock(t, records, WriterOptions{})
	file := &failingAt{ReaderAt: bytes.NewReader(b)}
	r, err := NewReader(file, int64(len(b)), "block")
	expect.NoError(t, err)
	defer r.Close()
	for err, want := range map[error]bool{
		syscall.EIO: true, syscall.EUCLEAN: true, syscall.EBADMSG: true, syscall.ENODATA: true, syscall.EREMOTEIO: true,
		syscall.EILSEQ: true, syscall.ENXIO: true,
		syscall.EMFILE: false, syscall.EACCES: false, syscall.ENOENT: false, syscall.ENOMEM: false, errors.New("other"): false,
	} {
		file.err = fmt.Errorf("pread: %w", err)
		if _, _, got := r.Get(records[0].key, new(Scratch)); IsDamage(got) != want || !errors.Is(got, err) {
			t.Errorf("%v: damage is %v, want %v", got, IsDamage(got), want)
		}
	}
}
