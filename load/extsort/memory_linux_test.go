package extsort

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"sequins/internal/fsys"
	"sequins/internal/pagecache"
	"sequins/test/expect"
)

// resident is the memory that the process has now, in bytes.
func resident(t *testing.T) int64 {
	t.Helper()
	data, err := os.ReadFile("/proc/self/statm")
	expect.NoError(t, err)
	pages, err := strconv.ParseInt(strings.Fields(string(data))[1], 10, 64)
	expect.NoError(t, err)
	return pages * int64(os.Getpagesize())
}

// TestSorterMemory: sorting many times the memory takes no more than the memory, as the operating
// system sees it, apart from one large value and some overhead; and Close gives it back.
func TestSorterMemory(t *testing.T) {
	const memory, large = 32 << 20, 4 << 20
	overhead := int64(12 << 20)
	if raceEnabled { // the detector has its own notes of all memory
		overhead = 64 << 20
	}
	debug.FreeOSMemory()
	before := resident(t)
	peak := before
	measure := func(i int) {
		if i%10_000 == 0 {
			peak = max(peak, resident(t))
		}
	}

	s := New(Options{Memory: memory, Dir: t.TempDir()})
	const n = 300_000
	value, largeValue := make([]byte, 500), make([]byte, large)
	for i := range uint64(n) {
		key := binary.BigEndian.AppendUint64(nil, i*0x9e3779b97f4a7c15)
		if i%20_000 == 1 {
			expect.NoError(t, s.Add(key, largeValue, false))
		} else {
			expect.NoError(t, s.Add(key, value, false))
		}
		measure(int(i))
	}
	records := 0
	expect.NoError(t, s.Merge(context.Background(), func(key, value []byte) error {
		records++
		measure(records)
		if len(value) == large {
			measure(0)
		}
		return nil
	}))
	if records != n {
		t.Errorf("%d records", records)
	}
	if grown := peak - before; grown > memory+large+overhead || grown < memory/2 {
		t.Errorf("%d MiB of memory for sorting with %d", grown>>20, memory>>20)
	}
	expect.NoError(t, s.Close())
	debug.FreeOSMemory()
	if kept := resident(t) - before; kept > overhead {
		t.Errorf("%d MiB of memory are kept after Close", kept>>20)
	}
}

// cached is how much of a file is in the page cache, in bytes.
func cached(t *testing.T, name string) int {
	t.Helper()
	f, err := os.Open(name)
	expect.NoError(t, err)
	defer f.Close()
	info, err := f.Stat()
	expect.NoError(t, err)
	mem, err := unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_SHARED)
	expect.NoError(t, err)
	defer unix.Munmap(mem)
	pages := make([]byte, (len(mem)+os.Getpagesize()-1)/os.Getpagesize())
	_, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&mem[0])), uintptr(len(mem)),
		uintptr(unsafe.Pointer(&pages[0])))
	if errno != 0 {
		t.Fatal(errno)
	}
	return bytes.Count(pages, []byte{1}) * os.Getpagesize()
}

// TestSorterLeavesThePageCache: what is written to a run, or read from it, does not stay in the page
// cache, where the file system takes advice at all.
func TestSorterLeavesThePageCache(t *testing.T) {
	dir := t.TempDir()
	control, err := fsys.OS.Create(dir + "/control")
	expect.NoError(t, err)
	_, err = control.Write(make([]byte, 8<<20))
	expect.NoError(t, err)
	expect.NoError(t, control.Sync())
	expect.NoError(t, unix.Fadvise(int(control.(*os.File).Fd()), 0, 0, unix.FADV_DONTNEED))
	expect.NoError(t, control.Close())
	want := cached(t, dir+"/control") + 1<<20 // in a tmpfs that is all

	s := New(Options{Memory: 24 << 20, Dir: dir})
	n := 0
	for ; len(s.runs) < 1; n++ {
		expect.NoError(t, s.Add(fmt.Appendf(nil, "%08d", n), make([]byte, 1000), false))
	}
	name := s.runs[0].name
	if s.runs[0].size < 20<<20 {
		t.Errorf("the run has only %d bytes", s.runs[0].size)
	}
	if got := cached(t, name); want < 8<<20 && got > want {
		t.Errorf("%d bytes of the run are in the page cache after writing", got)
	}
	records, got := 0, 0
	expect.NoError(t, s.Merge(context.Background(), func(key, value []byte) error {
		if records++; records == n { // by then all of the run was read
			got = cached(t, name)
		}
		return nil
	}))
	if want < 8<<20 && got > want+2*pagecache.Step {
		t.Errorf("%d bytes of the run are in the page cache after reading", got)
	}
	expect.NoError(t, s.Close())
}
