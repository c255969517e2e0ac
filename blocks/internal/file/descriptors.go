package file

import (
	"errors"
	"io/fs"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// descriptor is an open file that is closed when the last reference to it is released.
type descriptor struct {
	fd   int
	refs atomic.Int64
}

func (d *descriptor) acquire() bool {
	for {
		n := d.refs.Load()
		if n == 0 {
			return false
		}
		if d.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (d *descriptor) release() error {
	if d.refs.Add(-1) > 0 {
		return nil
	}
	return unix.Close(d.fd)
}

// openDescriptor opens a regular file; anything else, like a pipe that would be waited for, is a [ChangedError]. Where the
// process has no descriptors left it closes one of another block.
func openDescriptor(path string) (*descriptor, unix.Stat_t, error) {
	var st unix.Stat_t
	for {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
		switch {
		case err == nil:
			d := &descriptor{fd: fd}
			d.refs.Store(1)
			if err := unix.Fstat(fd, &st); err != nil {
				return nil, st, errors.Join(&fs.PathError{Op: "stat", Path: path, Err: err}, d.release())
			}
			if st.Mode&unix.S_IFMT != unix.S_IFREG {
				return nil, st, errors.Join(errNotRegular, d.release())
			}
			return d, st, nil
		case err == unix.ENXIO: // a socket
			return nil, st, errNotRegular
		case err == unix.EINTR:
		case (err == unix.EMFILE || err == unix.ENFILE) && openFiles.evict():
		default:
			return nil, st, &fs.PathError{Op: "open", Path: path, Err: err}
		}
	}
}

// descriptors bounds how many files of blocks are open. It closes those that have not been used for the longest
// time, about: the hand of a clock goes round over them, and what was used since it last came by stays.
type descriptors struct {
	mu    sync.Mutex
	limit int
	files []*File
	hand  int
}

// openFiles are those of all blocks of the process.
var openFiles = descriptors{limit: maxOpenFiles()}

// minOpenFiles is how many files of blocks are kept open however few the process may open.
const minOpenFiles = 64

// maxOpenFiles is a quarter of the descriptors that the process may open. Clients may have half of them; the rest is for
// other nodes, loads, the source and ZooKeeper. The runtime has raised the soft limit to the hard one.
func maxOpenFiles() int {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return minOpenFiles
	}
	return int(max(minOpenFiles, min(l.Cur/4, 1<<20)))
}

// add counts a file as open.
func (o *descriptors) add(f *File) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.files) >= o.limit && o.evictLocked() {
	}
	f.slot = len(o.files)
	o.files = append(o.files, f)
}

// evict closes one file; false if none is open.
func (o *descriptors) evict() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.evictLocked()
}

func (o *descriptors) evictLocked() bool {
	for range 2 * len(o.files) {
		if o.hand >= len(o.files) {
			o.hand = 0
		}
		f := o.files[o.hand]
		if f.used.Swap(false) {
			o.hand++
			continue
		}
		o.take(f)
		if d := f.fd.Swap(nil); d != nil {
			_ = d.release() // of a file that was only read
		}
		return true
	}
	return false
}

// remove no longer counts a file.
func (o *descriptors) remove(f *File) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.take(f)
}

func (o *descriptors) take(f *File) {
	if f.slot < 0 {
		return
	}
	last := o.files[len(o.files)-1]
	o.files[f.slot], last.slot = last, f.slot
	o.files[len(o.files)-1] = nil
	o.files, f.slot = o.files[:len(o.files)-1], -1
}
