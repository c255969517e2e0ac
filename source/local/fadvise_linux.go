package local

import (
	"os"

	"golang.org/x/sys/unix"
)

// What the kernel makes of the advice changes how fast and at whose expense a
// file is read, never what is read, so errors do not matter.

func adviseSequential(f *os.File) {
	_ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_SEQUENTIAL)
}

func adviseDontNeed(f *os.File, offset, length int64) {
	_ = unix.Fadvise(int(f.Fd()), offset, length, unix.FADV_DONTNEED)
}
