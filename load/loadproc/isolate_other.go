//go:build !linux

package loadproc

import (
	"os"
	"runtime/debug"
)

func program() string {
	path, err := os.Executable()
	if err != nil {
		return os.Args[0]
	}
	return path
}

// isolate does nothing on systems other than Linux.
func isolate() {}

// limitMemory sets a soft limit of the Go runtime.
func limitMemory(limit, sorting int64) error {
	if limit > 0 {
		debug.SetMemoryLimit(max(0, limit-sorting) / 4 * 3)
	}
	return nil
}
