package fsys

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// OS is the file system of the operating system. Its files are *os.File: callers that map a file or give the kernel
// advice can use interface{ Fd() uintptr }.
var OS FS = osFS{}

type osFS struct{}

// FileMode and dirMode are the permissions of what sequins creates, less the umask: data may be read by the group, and by
// nobody else.
const (
	FileMode fs.FileMode = 0o640
	dirMode  fs.FileMode = 0o750
)

func (osFS) Create(name string) (File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, FileMode)
	if err != nil {
		return nil, err // not f: a nil *os.File in a File is not nil
	}
	return f, nil
}

func (osFS) Open(name string) (File, error) {
	f, err := OpenRegular(name, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// ErrNotRegular is returned for a name that is not one of a regular file.
var ErrNotRegular = errors.New("not a regular file")

// OpenRegular is os.OpenFile for regular files. Anything else is an error that wraps [ErrNotRegular]: a pipe, above all,
// would be waited for until another process opens it. A file that is created gets [FileMode].
func OpenRegular(name string, flags int) (*os.File, error) {
	f, err := os.OpenFile(name, flags|syscall.O_NONBLOCK, FileMode)
	if errors.Is(err, syscall.ENXIO) || errors.Is(err, syscall.EISDIR) { // a pipe without a reader, a socket, or a directory
		return nil, &fs.PathError{Op: "open", Path: name, Err: ErrNotRegular}
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: name, Err: ErrNotRegular}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (osFS) Rename(oldname, newname string) error      { return os.Rename(oldname, newname) }
func (osFS) Link(oldname, newname string) error        { return os.Link(oldname, newname) }
func (osFS) Remove(name string) error                  { return os.Remove(name) }
func (osFS) RemoveAll(name string) error               { return os.RemoveAll(name) }
func (osFS) ReadDir(dir string) ([]fs.DirEntry, error) { return os.ReadDir(dir) }
func (osFS) Stat(name string) (fs.FileInfo, error)     { return os.Stat(name) }

func (o osFS) MkdirAll(dir string) error {
	err := isDir(dir)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	parent := filepath.Dir(dir)
	if err := o.MkdirAll(parent); err != nil {
		return err
	}
	if err := os.Mkdir(dir, dirMode); errors.Is(err, fs.ErrExist) {
		return isDir(dir) // created concurrently, or a dangling symbolic link
	} else if err != nil {
		return err
	}
	return o.SyncDir(parent)
}

func isDir(dir string) error {
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		err = &fs.PathError{Op: "mkdir", Path: dir, Err: syscall.ENOTDIR}
	}
	return err
}

func (osFS) SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
