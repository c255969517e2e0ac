package blocks

import (
	"errors"
	"fmt"
	"io"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mappedFile is an open file with a read-only map of all of it.
type mappedFile struct {
	f    *os.File
	fd   int
	size int64
	data []byte
}

func openMapped(path string) (*mappedFile, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, err
	}
	m := &mappedFile{f: f, fd: int(f.Fd()), size: st.Size()}
	if m.size == 0 {
		return m, nil
	}
	// Lookups are random: reading ahead would only push other pages out of memory.
	if err := unix.Fadvise(m.fd, 0, 0, unix.FADV_RANDOM); err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: fadvise: %w", path, err)
	}
	if m.data, err = unix.Mmap(m.fd, 0, int(m.size), unix.PROT_READ, unix.MAP_SHARED); err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: mmap: %w", path, err)
	}
	if err := unix.Madvise(m.data, unix.MADV_RANDOM); err != nil {
		m.Close()
		return nil, fmt.Errorf("%s: madvise: %w", path, err)
	}
	return m, nil
}

// ReadAt is pread without the bookkeeping of os.File, which costs a fifth of a warm read.
func (m *mappedFile) ReadAt(p []byte, off int64) (int, error) {
	for n := 0; ; {
		k, err := unix.Pread(m.fd, p[n:], off+int64(n))
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return n, err
		}
		n += k
		if n == len(p) {
			return n, nil
		}
		if k == 0 {
			return n, io.EOF
		}
	}
}

// resident says whether all of the file from an offset to another is in memory.
func (m *mappedFile) resident(from, to int64) (bool, error) {
	var w residency
	return w.covers(m.data, from, to)
}

// drop has the kernel forget pages of the file, as far as nobody has them mapped.
func (m *mappedFile) drop(off, n int64) error {
	if err := unix.Fadvise(m.fd, off, n, unix.FADV_DONTNEED); err != nil {
		return fmt.Errorf("fadvise: %w", err)
	}
	return nil
}

// Close unmaps and closes the file.
func (m *mappedFile) Close() error {
	var err error
	if m.data != nil {
		err = unix.Munmap(m.data)
		m.data = nil
	}
	return errors.Join(err, m.f.Close())
}

const residencyWindow = 1024 // pages of memory asked for at once, in up to 70 µs: 4 MiB of the file

// residency is a window of mincore's answer that moves forward over a map.
type residency struct {
	start, end int64 // in the file, multiples of the page size
	vec        [residencyWindow]byte
}

// covers says whether all of data[from:to] is in memory. Calls must not go back by more than the
// window.
func (w *residency) covers(data []byte, from, to int64) (bool, error) {
	page := int64(os.Getpagesize())
	for at := from &^ (page - 1); at < to; at += page {
		if at < w.start || at >= w.end {
			if err := w.load(data, at, page); err != nil {
				return false, err
			}
		}
		if w.vec[(at-w.start)/page]&1 == 0 {
			return false, nil
		}
	}
	return true, nil
}

func (w *residency) load(data []byte, at, page int64) error {
	w.start, w.end = at, min(at+residencyWindow*page, (int64(len(data))+page-1)&^(page-1))
	n := min(w.end, int64(len(data))) - at
	_, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&data[at])), uintptr(n), uintptr(unsafe.Pointer(&w.vec[0])))
	if errno != 0 {
		return fmt.Errorf("mincore: %w", errno)
	}
	return nil
}

// mapHuge returns n bytes of zeros outside the heap, on huge pages if there are any; nil if it cannot.
func mapHuge(n int) []byte {
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil
	}
	_ = unix.Madvise(b, unix.MADV_HUGEPAGE) // a kernel without them has slower memory, and is right otherwise
	return b
}

func unmap(b []byte) error { return unix.Munmap(b) }
