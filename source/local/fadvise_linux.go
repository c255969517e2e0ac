package local

import (
	"os"

	"golang.org/x/sys/unix"
)

// Errors are ignored: the advice only affects the page cache.

func adviseSequential(f *os.File) {
	_ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_SEQUENTIAL)
}

func adviseDontNeed(f *os.File, offset, length int64) {
	_ = unix.Fadvise(int(f.Fd()), offset, length, unix.FADV_DONTNEED)
}
