package build

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"sequins/store"
)

// tempPrefix is the prefix of the names of temporary directories. Each is a store, whose lock tells whether its build still runs.
const tempPrefix = "sequins-build-"

// removeStale removes the temporary directories that builds of this user have left in temp because they were killed. What
// cannot be removed stays.
func removeStale(temp string) {
	entries, err := os.ReadDir(temp)
	if err != nil {
		return
	}
	for _, e := range entries {
		if e.IsDir() && strings.HasPrefix(e.Name(), tempPrefix) && isOwn(e) && isOld(e) {
			removeUnlocked(filepath.Join(temp, e.Name()))
		}
	}
}

// leastAge is how old a directory is at least that is removed. A build that has just begun has a store that is not locked yet.
const leastAge = time.Minute

// isOld reports whether nothing was made in a directory for a while.
func isOld(e fs.DirEntry) bool {
	info, err := e.Info()
	return err == nil && time.Since(info.ModTime()) > leastAge
}

// isOwn reports whether a file belongs to the user of this process.
func isOwn(e fs.DirEntry) bool {
	info, err := e.Info()
	if err != nil {
		return false
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(s.Uid) == os.Geteuid()
}

// removeUnlocked removes a store that no process uses. A directory that is none yet stays: its build has just begun.
func removeUnlocked(dir string) {
	if !store.Exists(dir) {
		return
	}
	s, err := store.Open(dir)
	if err != nil {
		return
	}
	if s.Close() == nil {
		_ = os.RemoveAll(dir)
	}
}
