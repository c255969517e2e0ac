package local

import (
	"io/fs"
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// adviseSequential ignores errors: the advice only affects the page cache.
func adviseSequential(f *os.File) {
	_ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_SEQUENTIAL)
}

// timed are the file systems of local disks: there the change time of a file is by the clock of this machine, and no program sets it.
// Over a network it is by another clock, and with FUSE it is what a program says.
var timed = []uint32{unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC, unix.TMPFS_MAGIC, unix.OVERLAYFS_SUPER_MAGIC, zfsMagic}

const zfsMagic = 0x2fc12fc1 // ZFS_SUPER_MAGIC of OpenZFS

// hasChangeTimes reports whether changed can be relied on in a directory.
func hasChangeTimes(dir string) bool {
	var s unix.Statfs_t
	return unix.Statfs(dir, &s) == nil && slices.Contains(timed, uint32(s.Type))
}

// changed returns the time of the last change of a file's content, name or attributes.
func changed(info fs.FileInfo) time.Time {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return time.Time{}
	}
	return time.Unix(s.Ctim.Unix())
}
