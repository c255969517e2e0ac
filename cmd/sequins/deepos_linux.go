package main

import (
	"context"

	"golang.org/x/sys/unix"
)

// unfit are file systems that are hardly meant to hold a store, by their magic numbers.
var unfit = map[int64]string{
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

// statDisk returns the file system of a directory.
func statDisk(dir string) (disk, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return disk{}, err
	}
	return disk{
		bytes: inBytes(s.Blocks, float64(s.Bsize)), free: inBytes(s.Bavail, float64(s.Bsize)),
		unfit: unfit[int64(s.Type)], //nolint:unconvert // its type differs between architectures
	}, nil
}

func inBytes(blocks uint64, size float64) int64 { return int64(min(float64(blocks)*size, 1<<62)) }

// checkClock reports whether the kernel's clock is synchronized. Tickets of Kerberos, signatures of S3 and certificates depend on it.
func checkClock(context.Context) finding {
	var t unix.Timex
	state, err := unix.Adjtimex(&t)
	if err != nil {
		return warned("whether it is synchronized is not known: %v", err)
	}
	if state == unix.TIME_ERROR || t.Status&unix.STA_UNSYNC != 0 {
		return warned("the kernel's clock is not synchronized: run an NTP client (timedatectl and chronyc tracking show its state)")
	}
	return found("it is synchronized")
}
