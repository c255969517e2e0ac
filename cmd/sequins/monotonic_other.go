//go:build !linux

package main

// monotonicMicros is 0 where there is no systemd to tell it to.
func monotonicMicros() int64 { return 0 }
