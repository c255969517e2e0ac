//go:build !linux

package blocks

import "syscall"

// unreadable are the errors with which disks and file systems answer for data that they cannot read.
var unreadable = []syscall.Errno{syscall.EIO}
