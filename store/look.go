package store

import (
	"os"
	"path/filepath"
	"time"

	"sequins/internal/fsys"
)

// Look returns the store in dir for reading only: without its lock, which its owner may hold, and without making or
// removing anything. Of its methods, only those that list and read may be called.
func Look(dir string) *Store {
	return &Store{data: filepath.Join(dir, dataDir), fs: fsys.OS, now: time.Now, dirs: map[string]*Dir{}, unsynced: map[string]bool{}}
}

// Owner returns the process that uses the store in dir, 0 if there is none or it is not known.
func Owner(dir string) int {
	f, err := fsys.OpenRegular(filepath.Join(dir, lockName), os.O_RDONLY)
	if err != nil {
		return 0
	}
	defer f.Close() //nolint:errcheck // only read from
	if pid := readPID(f); pid != 0 && running(pid) {
		return pid
	}
	return 0
}
