// Package file owns the files of blocks: their descriptors, their maps, and which parts of them are in memory.
//
// The descriptors of a process are few, its maps too, and a node may have many thousands of blocks. So a file is mapped
// only while there are not too many maps, and stays open only while there are not too many descriptors; others are opened for
// each read.
package file

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// File is the file of a block. If its descriptor does not stay open, each read opens one. The map, if there is one, stays until
// Close.
type File struct {
	path string
	size int64
	tail []byte // by which a file that is opened again is known to be the same; nil until it has been read
	data []byte // the map of the whole file; nil if it is not mapped
	keep bool   // the descriptor stays open if there are not too many

	fd atomic.Int64 // the descriptor that stays open, and 1; 0 for none
}

// Open opens the file at path. The caller decides between Keep and Drop.
func Open(path string) (*File, error) {
	fd, st, err := openDescriptor(path)
	if err != nil {
		return nil, err
	}
	f := &File{path: path, size: st.Size, keep: true}
	f.stay(fd)
	return f, f.release(fd)
}

// Size is the length of the file when it was opened, in bytes.
func (f *File) Size() int64 { return f.size }

// SetTail tells the last bytes of the file. A file that is opened again must have the same.
func (f *File) SetTail(tail []byte) { f.tail = bytes.Clone(tail) }

// Data is the map of the whole file; nil if it is not mapped.
func (f *File) Data() []byte { return f.data }

// ChangedError is returned by reads of a file that has been removed, or replaced by another one, since it was opened, and
// for one that is no regular file.
type ChangedError struct {
	Offset int64  // where the difference is
	Reason string // what is different
}

// Error says what is different.
func (e *ChangedError) Error() string { return e.Reason }

var errNotRegular = &ChangedError{Reason: "not a regular file"}

// reopen opens the file again, under the name that it may have been set aside under. A block that has been loaded again
// under its old name has the same tail and the same bytes.
func (f *File) reopen() (fd int, err error) {
	fd, err = f.openAs(f.path)
	if changed := (*ChangedError)(nil); !errors.As(err, &changed) {
		return fd, err
	}
	if fd, err := f.openAs(f.path + CorruptSuffix); err == nil {
		return fd, nil
	}
	return 0, err
}

// CorruptSuffix follows the name of a file that was set aside as damaged. A [File] finds the file under this name too.
const CorruptSuffix = ".corrupt"

// openAs opens the file at path, and checks that it ends like the file that was opened first.
func (f *File) openAs(path string) (int, error) {
	fd, _, err := openDescriptor(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, &ChangedError{Reason: "the file has been removed"}
	}
	if err != nil {
		return 0, err
	}
	if f.keep {
		randomAccess(fd)
	}
	buf := make([]byte, len(f.tail))
	n, err := pread(fd, buf, f.size-int64(len(buf)))
	if err == io.EOF || n == len(buf) && !bytes.Equal(buf, f.tail) {
		err = &ChangedError{Offset: f.size - int64(len(buf)), Reason: "the footer has changed since the block was opened"}
	}
	if err != nil {
		return 0, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}

// ReadAt implements io.ReaderAt.
func (f *File) ReadAt(p []byte, off int64) (int, error) {
	fd, err := f.acquire()
	if err != nil {
		return 0, err
	}
	n, err := pread(fd, p, off)
	if e := f.release(fd); err == nil {
		err = e
	}
	return n, err
}

// SendTo sends up to n bytes from off on to a socket, without copying them. It does not wait for a socket that has no room:
// then the error is EAGAIN. 0 without an error means that the file has ended.
func (f *File) SendTo(socket int, off int64, n int) (int, error) {
	fd, err := f.acquire()
	if err != nil {
		return 0, err
	}
	n, err = unix.Sendfile(socket, fd, &off, n)
	return max(n, 0), cmp.Or(err, f.release(fd))
}

// pread reads all of p. It is without the bookkeeping of os.File, which costs a fifth of a warm read.
func pread(fd int, p []byte, off int64) (int, error) {
	for n := 0; ; {
		k, err := unix.Pread(fd, p[n:], off+int64(n))
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return n, err
		}
		n += k
		if n == len(p) {
			return n, nil
		}
		if k == 0 {
			return n, io.EOF
		}
	}
}

// Keep maps the file, which will be read at random places, if not too many are mapped yet. Without a map all is read.
func (f *File) Keep() error {
	fd, err := f.acquire()
	if err != nil {
		return err
	}
	randomAccess(fd)
	if f.size > 0 && mappedFiles.Add(1) <= int64(maxMaps()) {
		f.data = mapFile(fd, f.size)
	}
	if f.data == nil && f.size > 0 {
		mappedFiles.Add(-1)
	}
	return f.release(fd)
}

// Drop closes the descriptor, which does not stay open from now on.
func (f *File) Drop() error {
	f.keep = false
	fd := f.fd.Swap(0)
	if fd == 0 {
		return nil
	}
	openFiles.Add(-1)
	return unix.Close(int(fd - 1))
}

// CurrentSize returns the length that the file has now, in bytes.
func (f *File) CurrentSize() (int64, error) {
	fd := f.kept()
	if fd < 0 {
		st, err := os.Stat(f.path)
		if err != nil {
			return 0, err
		}
		return st.Size(), nil
	}
	var st unix.Stat_t
	err := unix.Fstat(fd, &st)
	return st.Size, err
}

// Close unmaps and closes the file.
func (f *File) Close() error { return errors.Join(f.unmapFile(), f.Drop()) }

var mappedFiles atomic.Int64

func (f *File) unmapFile() error {
	if f.data == nil {
		return nil
	}
	err := unmap(f.data)
	f.data = nil
	mappedFiles.Add(-1)
	if err != nil {
		err = fmt.Errorf("munmap: %w", err)
	}
	return err
}
