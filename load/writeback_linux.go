package load

import "golang.org/x/sys/unix"

// startWriteback has the kernel begin to write a range of a file to the disk.
// It is advice: what does not get there now, Sync writes.
func startWriteback(fd uintptr, offset, length int64) {
	_ = unix.SyncFileRange(int(fd), offset, length, unix.SYNC_FILE_RANGE_WRITE)
}
