package main

import "golang.org/x/sys/unix"

// monotonicMicros is CLOCK_MONOTONIC, in microseconds.
func monotonicMicros() int64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return 0 // there is no Linux without this clock
	}
	return now.Nano() / 1000
}
