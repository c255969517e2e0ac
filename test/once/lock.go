package once

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// Lock waits until nobody else holds a file, and locks it. It creates the file and its directory if they do not exist.
func Lock(path string) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
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
