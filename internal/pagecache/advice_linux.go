package pagecache

import "golang.org/x/sys/unix"

func drop(fd int, offset, length int64) { _ = unix.Fadvise(fd, offset, length, unix.FADV_DONTNEED) }

// write writes a part of a file to the disk, or only begins to.
func write(fd int, offset, length int64, wait bool) {
	flags := unix.SYNC_FILE_RANGE_WRITE
	if wait {
		flags |= unix.SYNC_FILE_RANGE_WAIT_BEFORE | unix.SYNC_FILE_RANGE_WAIT_AFTER
	}
	_ = unix.SyncFileRange(fd, offset, length, flags)
}
