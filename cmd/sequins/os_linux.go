package main

import "golang.org/x/sys/unix"

// unfitKinds are file systems that are hardly meant to hold a store, by their magic numbers.
var unfitKinds = map[int64]string{
	unix.TMPFS_MAGIC:           "tmpfs, which is memory: it counts as memory of the machine or the container, and is lost at a restart",
	unix.RAMFS_MAGIC:           "ramfs, which is memory without a limit",
	unix.NFS_SUPER_MAGIC:       "nfs: each read of a block is a request to a server; use a local disk",
	unix.SMB_SUPER_MAGIC:       "smb, a network file system; use a local disk",
	unix.CIFS_SUPER_MAGIC:      "cifs, a network file system; use a local disk",
	unix.SMB2_SUPER_MAGIC:      "smb, a network file system; use a local disk",
	unix.V9FS_MAGIC:            "9p, a network file system; use a local disk",
	unix.CEPH_SUPER_MAGIC:      "ceph, a network file system; use a local disk",
	unix.FUSE_SUPER_MAGIC:      "fuse, which may lack locks and mapped files, and is slow; use a local disk",
	unix.OVERLAYFS_SUPER_MAGIC: "overlayfs: in a container it is lost with the container; use a volume",
}

// unfit says what a file system is and why it is hardly meant to hold a store, "" if it may.
func unfit(s *unix.Statfs_t) string {
	return unfitKinds[int64(s.Type)] //nolint:unconvert // its type differs between architectures
}

// monotonicMicros returns CLOCK_MONOTONIC in microseconds.
func monotonicMicros() int64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return 0 // cannot happen on Linux
	}
	return now.Nano() / 1000
}
