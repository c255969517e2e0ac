package load

import "golang.org/x/sys/unix"

// startWriteback asks the kernel to start writing a range of a file to disk. Errors are ignored: Sync writes
// the rest.
func startWriteback(fd uintptr, offset, length int64) {
	_ = unix.SyncFileRange(int(fd), offset, length, unix.SYNC_FILE_RANGE_WRITE)
}
