//go:build !linux

package main

import "golang.org/x/sys/unix"

// unfit is for Linux.
func unfit(*unix.Statfs_t) string { return "" }

// monotonicMicros returns 0: there is no systemd.
func monotonicMicros() int64 { return 0 }
