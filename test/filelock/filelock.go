// Package filelock locks files, for what test packages that run at the same time make once.
package filelock

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// Lock waits until nobody else holds a file, and locks it. It creates the file if there is none.
func Lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	for {
		if err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX); !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("locking %s: %w", path, errors.Join(err, f.Close()))
	}
	return func() { _ = f.Close() }, nil // unlocks
}
