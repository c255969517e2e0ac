package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"sequins/internal/fsys"
)

// lockName is the file in a store's directory that its owner holds under flock. It contains the
// owner's pid in decimal. It is never removed: a process that had opened
// it just before would lock a file that nobody else can see.
const lockName = "sequins.lock"

// ErrLocked is the class of the error of [Open] for a store that another process uses. Its text names the process, unless that has not said so.
var ErrLocked = errors.New("store is in use")

// lock takes the lock of the store in dir. It is held until the file that it returns is closed.
func lock(dir string) (*os.File, error) {
	path := filepath.Join(dir, lockName)
	f, err := fsys.OpenRegular(path, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		defer f.Close()
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("locking %s: %w", path, err)
		}
		owner, pid := "another process", int32(0)
		if _, err := fmt.Fscan(f, &pid); err == nil && pid > 0 {
			owner = fmt.Sprintf("process %d", pid)
		}
		return nil, fmt.Errorf("%s: %w by %s", path, ErrLocked, owner)
	}
	// A disk without room for the pid does not keep this process from serving what the store has; then the file is empty.
	_ = f.Truncate(0)
	_, _ = f.WriteAt(fmt.Appendln(nil, os.Getpid()), 0)
	return f, nil
}
