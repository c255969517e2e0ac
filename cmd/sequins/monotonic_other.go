//go:build !linux

package main

// monotonicMicros returns 0: there is no systemd.
func monotonicMicros() int64 { return 0 }
