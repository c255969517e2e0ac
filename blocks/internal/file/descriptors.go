package file

import (
	"errors"
	"io/fs"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// openDescriptor opens a regular file; anything else, like a pipe that would be waited for, is a [ChangedError].
func openDescriptor(path string) (fd int, st unix.Stat_t, err error) {
	for {
		fd, err = unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.ENXIO: // a socket
			return 0, st, errNotRegular
		case err != nil:
			return 0, st, &fs.PathError{Op: "open", Path: path, Err: err}
		}
		if err := unix.Fstat(fd, &st); err != nil {
			return 0, st, errors.Join(&fs.PathError{Op: "stat", Path: path, Err: err}, unix.Close(fd))
		}
		if st.Mode&unix.S_IFMT != unix.S_IFREG {
			return 0, st, errors.Join(errNotRegular, unix.Close(fd))
		}
		return fd, st, nil
	}
}

var (
	// openFiles is how many files of blocks stay open, of all blocks of the process.
	openFiles atomic.Int64
	// mostOpen is how many may. Others are opened for each read, which takes some microseconds.
	mostOpen = maxOpenFiles()
)

// minOpenFiles is how many files of blocks are kept open however few the process may open.
const minOpenFiles = 64

// maxOpenFiles is a quarter of the descriptors that the process may open. Clients may have half of them; the rest is for
// other nodes, loads, the source and ZooKeeper. The runtime has raised the soft limit to the hard one.
func maxOpenFiles() int64 {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return minOpenFiles
	}
	return int64(max(minOpenFiles, min(l.Cur/4, 1<<20)))
}

// kept returns the descriptor that stays open, -1 if there is none.
func (f *File) kept() int { return int(f.fd.Load()) - 1 }

// acquire returns a descriptor of the file, which is opened if it is not. It must be released.
func (f *File) acquire() (fd int, err error) {
	if fd := f.kept(); fd >= 0 {
		return fd, nil
	}
	if fd, err = f.reopen(); err == nil && f.keep {
		f.stay(fd)
	}
	return fd, err
}

// stay keeps a descriptor until Drop, unless too many files are open or another one of this file is kept.
func (f *File) stay(fd int) {
	if openFiles.Add(1) > mostOpen || !f.fd.CompareAndSwap(0, int64(fd)+1) {
		openFiles.Add(-1)
	}
}

// release closes a descriptor that does not stay open.
func (f *File) release(fd int) error {
	if fd == f.kept() {
		return nil
	}
	return unix.Close(fd)
}
