package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sequins/internal/fsys"
)

// lockName is the file in a store's directory that its owner holds under flock. It contains the
// owner's pid in decimal, filled up with spaces. It is never removed: a process that had opened
// it just before would lock a file that nobody else can see.
const lockName = "sequins.lock"

// lockSize is the length of its content, always the same, so that a full disk does not keep the
// next owner from writing its pid over the last one's.
const lockSize = 16

// ErrLocked is the class of the error of [Open] for a store that another process uses. Its text names the process, unless that has not said so.
var ErrLocked = errors.New("store is in use")

// lockPatience is how long lock waits for the load processes of an owner that is dead. They end as soon
// as they notice that, unless the kernel has one of them wait for the disk.
const lockPatience = 30 * time.Second

// lock takes the lock of the store in dir. It does not wait for a process that owns the store, but for
// the load processes that a dead one has left, which have inherited the lock. It is held until the file
// that lock returns is closed, in this process and all that have inherited it.
func lock(dir string) (*os.File, error) {
	path := filepath.Join(dir, lockName)
	f, err := fsys.OpenRegular(path, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	err = flock(f)
	for end := time.Now().Add(lockPatience); errors.Is(err, unix.EWOULDBLOCK) && !running(readPID(f)) && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
		err = flock(f)
	}
	if err != nil {
		defer f.Close()
		owner := "another process"
		if pid := readPID(f); pid != 0 {
			owner = fmt.Sprintf("process %d", pid)
		}
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("%s: %w by %s", path, ErrLocked, owner)
		}
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	if err := writePID(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func flock(f *os.File) error {
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// running reports whether a process may be running. One that is not known, 0, may be.
func running(pid int) bool {
	if pid == 0 {
		return true
	}
	if errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true // a system without /proc, or a process that is hidden
	}
	end := strings.LastIndex(string(stat), ") ") // behind the name, which can be anything
	return end < 0 || !strings.HasPrefix(string(stat)[end+2:], "Z")
}

// readPID returns the pid in a lock file, or 0 where there is none.
func readPID(f *os.File) int {
	buf := make([]byte, lockSize)
	n, err := f.ReadAt(buf, 0)
	if err != nil && err != io.EOF {
		return 0
	}
	pid, err := strconv.ParseInt(strings.TrimSpace(string(buf[:n])), 10, 32)
	if err != nil || pid < 0 {
		return 0
	}
	return int(pid)
}

// writePID notes who owns the store. A disk without room for that does not keep a process from
// serving what the store has; then the file says nothing rather than the pid of the last owner.
func writePID(f *os.File) error {
	content := fmt.Sprintf("%-*d\n", lockSize-1, os.Getpid())
	_, err := f.WriteAt([]byte(content), 0)
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return f.Truncate(0)
	}
	return err
}
