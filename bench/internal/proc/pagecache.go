package proc

import (
	"fmt"
	"io"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Drop flushes the files and removes them from the page cache. It fails if a part remains in memory, as of
// mapped files.
func Drop(paths ...string) error {
	for _, p := range paths {
		if err := forget(p); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
		left, err := Resident(p)
		if err != nil {
			return err
		}
		if left > 0 {
			return fmt.Errorf("%s: %d bytes cannot be dropped from memory", p, left)
		}
	}
	return nil
}

func forget(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		return err
	}
	return unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
}

// Warm reads the files, so that they are in memory. It fails if more than a hundredth of one is not in
// memory afterwards: the kernel may drop single pages at any time.
func Warm(paths ...string) error {
	for _, p := range paths {
		f, err := os.Open(p)
		if err != nil {
			return err
		}
		size, err := io.Copy(io.Discard, f)
		f.Close()
		if err != nil {
			return err
		}
		in, err := Resident(p)
		if err != nil {
			return err
		}
		if in < size-size/100 {
			return fmt.Errorf("%s: only %d of %d bytes stay in memory", p, in, size)
		}
	}
	return nil
}

// Resident is how many bytes of a file are in memory, to whole pages of memory.
func Resident(path string) (int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil || st.Size() == 0 {
		return 0, err
	}
	b, err := unix.Mmap(int(f.Fd()), 0, int(st.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return 0, fmt.Errorf("%s: mmap: %w", path, err)
	}
	defer func() { _ = unix.Munmap(b) }()
	page := os.Getpagesize()
	vec := make([]byte, (len(b)+page-1)/page)
	if _, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), uintptr(unsafe.Pointer(&vec[0]))); errno != 0 {
		return 0, fmt.Errorf("%s: mincore: %w", path, errno)
	}
	var pages int64
	for _, v := range vec {
		pages += int64(v & 1)
	}
	return pages * int64(page), nil
}
