package local

import (
	"io"
	"os"
	"path/filepath"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"sequins/source"
	"sequins/test/expect"
)

// resident counts the pages of a file that are in the page cache.
func resident(t *testing.T, path string) int {
	t.Helper()
	f, err := os.Open(path)
	expect.NoError(t, err)
	defer f.Close()
	info, err := f.Stat()
	expect.NoError(t, err)
	m, err := unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_SHARED)
	expect.NoError(t, err)
	defer unix.Munmap(m)
	pages := make([]byte, (len(m)+os.Getpagesize()-1)/os.Getpagesize())
	_, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&m[0])), uintptr(len(m)), uintptr(unsafe.Pointer(&pages[0])))
	if errno != 0 {
		t.Fatal(errno)
	}
	n := 0
	for _, p := range pages {
		n += int(p & 1)
	}
	return n
}

// TestForgets loads a file that is in the page cache and checks that it is not
// there afterwards. On tmpfs, files exist only in the page cache and stay there.
func TestForgets(t *testing.T) {
	d := dir(t.TempDir())
	const size = 16<<20 + 123
	d.Put(t, "db/1/part-00000", make([]byte, size))
	path := filepath.Join(string(d), "db/1/part-00000")
	f, err := os.Open(path)
	expect.NoError(t, err)
	if err := f.Sync(); err != nil { // dirty pages stay
		t.Fatal(err)
	}
	f.Close()
	before := resident(t, path)

	r, err := d.Source(t).Open(t.Context(), "db", "1", source.File{Name: "part-00000"}, source.ReadOptions{})
	expect.NoError(t, err)
	if n, err := io.Copy(io.Discard, r); n != size || err != nil {
		t.Fatalf("read %d bytes, %v", n, err)
	}
	expect.NoError(t, r.Close())
	if after := resident(t, path); after > 1 && !inMemory(t, path) {
		t.Errorf("%d pages are in memory after reading, %d were before", after, before)
	}
}

func inMemory(t *testing.T, path string) bool {
	var s unix.Statfs_t
	expect.NoError(t, unix.Statfs(path, &s))
	return s.Type == unix.TMPFS_MAGIC
}
