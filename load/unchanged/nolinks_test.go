package unchanged_test

import (
	"context"
	"io"
	"os"
	"sync/atomic"
	"syscall"
	"testing"

	"sequins/internal/fsys"
	"sequins/source"
	"sequins/store"
	"sequins/test/expect"
)

// noLinks is a file system without hard links.
type noLinks struct{ fsys.FS }

func (noLinks) Link(oldname, newname string) error {
	return &os.LinkError{Op: "link", Old: oldname, New: newname, Err: syscall.EPERM}
}

// counted counts the bytes that are read of a source.
type counted struct {
	source.Source
	n *atomic.Int64
}

func (c counted) Open(ctx context.Context, db, version string, file source.File, o source.ReadOptions) (io.ReadCloser, error) {
	f, err := c.Source.Open(ctx, db, version, file, o)
	return countedFile{f, c.n}, err
}

type countedFile struct {
	io.ReadCloser
	n *atomic.Int64
}

func (c countedFile) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// On a file system without hard links, files are not read for hashes that are of no use.
func TestNoHardLinks(t *testing.T) {
	w := newWorld(t)
	s, err := store.OpenFS(noLinks{fsys.OS}, t.TempDir())
	expect.NoError(t, err)
	w.store = s
	var n atomic.Int64
	w.src = counted{w.src, &n}
	read := func(version string) int64 {
		n.Store(0)
		w.put(version, 1, numbers(20_000, "1"), false)
		if linked := w.load(version); len(linked) > 0 {
			t.Fatal("linked")
		}
		return n.Load()
	}
	first := read("1")
	for _, version := range []string{"2", "3"} {
		if again := read(version); again > first+first/10 {
			t.Errorf("%d bytes were read for the first version, and %d for version %s", first, again, version)
		}
	}
}
