package main

import "golang.org/x/sys/unix"

// monotonicMicros returns CLOCK_MONOTONIC in microseconds.
func monotonicMicros() int64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return 0 // cannot happen on Linux
	}
	return now.Nano() / 1000
}
