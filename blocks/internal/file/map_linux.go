package file

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// defaultMaps is the kernel's default of vm.max_map_count.
const defaultMaps = 65530

// maxMaps is how many blocks are mapped at most: three quarters of what the kernel allows a process. The rest is for
// the heap, threads and libraries.
var maxMaps = sync.OnceValue(func() int {
	n := defaultMaps
	if b, err := os.ReadFile("/proc/sys/vm/max_map_count"); err == nil {
		if v, err := strconv.Atoi(strings.TrimSpace(string(b))); err == nil {
			n = v
		}
	}
	return n / 4 * 3
})

// randomAccess tells the kernel not to read ahead: lookups are random, it would only push other pages out of
// memory.
func randomAccess(fd int) {
	_ = unix.Fadvise(fd, 0, 0, unix.FADV_RANDOM) // only advice
}

// mapFile maps a file for reading; nil if the kernel does not.
func mapFile(fd int, size int64) []byte {
	b, err := unix.Mmap(fd, 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil
	}
	_ = unix.Madvise(b, unix.MADV_RANDOM) // only advice
	return b
}

// ReadCached reads p as far as the kernel has it in memory, and reports whether that was all of it. Linux 5.9 and later begin to read the
// rest, and wait only if the queue of the disk is full.
func (f *File) ReadCached(p []byte, off int64) bool {
	fd := f.kept()
	if fd < 0 {
		return false
	}
	n, err := unix.Preadv2(fd, [][]byte{p}, off, unix.RWF_NOWAIT)
	return err == nil && n == len(p)
}

// Prefetch asks the kernel to begin reading n bytes, and does not wait for them. It does nothing if the file does not stay open.
func (f *File) Prefetch(off, n int64) {
	if fd := f.kept(); fd >= 0 {
		_ = unix.Fadvise(fd, off, n, unix.FADV_WILLNEED) // only advice
	}
}

// Resident reports whether all of the file from one offset to another is in memory; false if it is not mapped.
func (f *File) Resident(from, to int64) (bool, error) {
	if f.data == nil {
		return false, nil
	}
	var w Residency
	return w.Covers(f.data, from, to)
}

// Forget asks the kernel to drop n bytes of the file from memory, except for pages that a process has mapped.
func (f *File) Forget(off, n int64) error {
	fd, err := f.acquire()
	if err != nil {
		return err
	}
	err = unix.Fadvise(fd, off, n, unix.FADV_DONTNEED)
	if e := f.release(fd); err == nil {
		err = e
	}
	if err != nil {
		return fmt.Errorf("fadvise: %w", err)
	}
	return nil
}

const residencyWindow = 1024 // pages of memory asked for at once, in up to 70 µs: 4 MiB of the file

// Residency is a window of mincore's answer that moves forward over a map.
type Residency struct {
	start, end int64 // in the file, multiples of the page size
	vec        [residencyWindow]byte
}

// Start is where the window begins.
func (w *Residency) Start() int64 { return w.start }

// Covers reports whether all of data[from:to] is in memory. It moves the window if need be; calls must not go back by
// more than the window.
func (w *Residency) Covers(data []byte, from, to int64) (bool, error) {
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

func (w *Residency) load(data []byte, at, page int64) error {
	w.start, w.end = at, min(at+residencyWindow*page, (int64(len(data))+page-1)&^(page-1))
	n := min(w.end, int64(len(data))) - at
	_, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&data[at])), uintptr(n), uintptr(unsafe.Pointer(&w.vec[0])))
	if errno != 0 {
		return fmt.Errorf("mincore: %w", errno)
	}
	return nil
}

func unmap(b []byte) error { return unix.Munmap(b) }
