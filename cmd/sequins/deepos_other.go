//go:build !linux

package main

import (
	"context"

	"golang.org/x/sys/unix"
)

// statDisk returns the file system of a directory.
func statDisk(dir string) (disk, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return disk{}, err
	}
	size := float64(s.Bsize)
	return disk{bytes: int64(min(float64(s.Blocks)*size, 1<<62)), free: int64(min(float64(s.Bavail)*size, 1<<62))}, nil
}

// checkClock is for Linux.
func checkClock(context.Context) finding {
	return found("whether it is synchronized is not known on this system")
}
