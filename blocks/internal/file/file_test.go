package file

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"sequins/test/blocktest"
	"sequins/test/expect"
)

// limitFiles has no more than n files of blocks open during a test.
func limitFiles(t *testing.T, n int64) {
	before := mostOpen
	mostOpen = n
	t.Cleanup(func() { mostOpen = before })
}

// openMany writes n files of different content in dir and opens them as a block does.
func openMany(t *testing.T, dir string, n int) (files []*File, contents [][]byte) {
	t.Helper()
	for i := range n {
		path := filepath.Join(dir, fmt.Sprintf("%05d.block", i))
		content := bytes.Repeat(fmt.Appendf(nil, "%08d", i), 10_000)
		expect.NoError(t, os.WriteFile(path, content, 0o644))
		f, err := Open(path)
		expect.NoError(t, err)
		f.SetTail(content[len(content)-100:])
		expect.NoError(t, f.Keep())
		t.Cleanup(func() { expect.NoError(t, f.Close()) })
		files, contents = append(files, f), append(contents, content)
	}
	return files, contents
}

// TestFilesAreBounded reads more files at once than may be open.
func TestFilesAreBounded(t *testing.T) {
	const limit = 10
	limitFiles(t, limit)
	dir := t.TempDir()
	files, contents := openMany(t, dir, 50)
	if n := blocktest.Descriptors(t, dir); n > limit {
		t.Errorf("%d files are open after 50 were opened", n)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(rand.Uint64(), 1))
			var b [16]byte
			for range 5000 {
				i := rng.IntN(len(files))
				f, want := files[i], contents[i][160:][:len(b)]
				if n, err := f.ReadAt(b[:], 160); n != len(b) || err != nil || !bytes.Equal(b[:], want) {
					t.Error(n, err)
					return
				}
				if data := f.Data(); data != nil && !bytes.Equal(data[160:][:len(b)], want) {
					t.Error("the map shows something else than the file")
					return
				}
			}
		})
	}
	wg.Wait()
	if n := blocktest.Descriptors(t, dir); n > limit {
		t.Errorf("%d files are open of %d that were read", n, len(files))
	}
}

// TestReopenedFileIsTheSame: a file that is opened for each read, and that is another one now or has gone, is not read.
func TestEvictedFileIsTheSame(t *testing.T) {
	limitFiles(t, 1)
	for name, change := range map[string]func(path string) error{
		"removed": os.Remove,
		"replaced": func(path string) error {
			return errors.Join(os.Remove(path), os.WriteFile(path, make([]byte, 80_000), 0o644))
		},
		"cut": func(path string) error { return os.Truncate(path, 5000) },
	} {
		files, contents := openMany(t, t.TempDir(), 2)
		expect.NoError(t, change(files[1].path))
		b := make([]byte, 8)
		var changed *ChangedError
		if _, err := files[1].ReadAt(b, 0); !errors.As(err, &changed) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := files[0].ReadAt(b, 8); err != nil || !bytes.Equal(b, contents[0][:8]) {
			t.Errorf("%s: the other file: %q, %v", name, b, err)
		}
	}
}

// A pipe in the place of a block is not waited for, neither at first nor when the block is opened again.
func TestPipe(t *testing.T) {
	files, _ := openMany(t, t.TempDir(), 1)
	f := files[0]
	expect.NoError(t, f.Drop())
	expect.NoError(t, os.Remove(f.path))
	expect.NoError(t, syscall.Mkfifo(f.path, 0o600))
	changed := (*ChangedError)(nil)
	if _, err := Open(f.path); !errors.As(err, &changed) {
		t.Errorf("opened: %v", err)
	}
	if _, err := f.ReadAt(make([]byte, 10), 0); !errors.As(err, &changed) {
		t.Errorf("opened again: %v", err)
	}
}
