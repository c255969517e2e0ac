// Package faultfs simulates a file system in memory, with failures and power loss, for tests.
package faultfs

import (
	"errors"
	"io/fs"
	"os"
	"sync"
	"syscall"

	"sequins/internal/fsys"
)

// FS is an in-memory file system for tests of failures. It counts system calls, so that a test can fail each of
// them in turn ([FS.FailAt]), cut the power after each of them ([FS.PowerOffAfter]), or fill the disk
// ([FS.SetFree]); and it tracks fsyncs, so that [FS.Crash] can return what a power loss leaves.
//
// Each method of fsys.File and fsys.FS counts as one system call, except MkdirAll and RemoveAll, which count one for each
// directory that they look up, create, fsync or remove, like a real file system.
//
// An FS is safe for concurrent use.
type FS struct {
	mu       sync.Mutex
	root     *node
	calls    int   // system calls made so far
	failAt   int   // the call to fail, counted like calls; 0: none
	failErr  error // the error of that call
	offAfter int   // calls above this one fail with ErrPowerOff; 0: none
	limited  bool  // free is in effect
	free     int64 // bytes left on the disk
	seq      int   // number of directory operations so far
	open     int   // open files
}

// ErrPowerOff is the error of every system call after PowerOffAfter.
var ErrPowerOff = errors.New("the power is off")

var _ fsys.FS = (*FS)(nil)

// New returns an empty file system, with a root directory, whose calls succeed.
func New() *FS { return &FS{root: newDir()} }

// Calls returns the number of system calls so far.
func (f *FS) Calls() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls
}

// OpenFiles returns the number of open files.
func (f *FS) OpenFiles() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.open
}

// FailAt makes the nth system call from now (1 is the next) fail with err. A failed write has written half of its
// bytes; after a failed fsync neither it nor a later one makes anything durable; a failed Close closes; any other
// failed call has no effect.
func (f *FS) FailAt(n int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failAt, f.failErr = f.calls+n, err
}

// PowerOffAfter cuts the power after n more system calls: later calls fail with [ErrPowerOff] and have no effect.
func (f *FS) PowerOffAfter(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.offAfter = f.calls + n
	if f.offAfter == 0 {
		f.offAfter = -1
	}
}

// PowerOn undoes PowerOffAfter and keeps what was not fsynced, as after a restart of the process rather than the
// machine.
func (f *FS) PowerOn() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.offAfter = 0
}

// SetFree limits the disk to n more bytes of file content; writes beyond fail with ENOSPC. Removing files frees their
// bytes.
func (f *FS) SetFree(n int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.limited, f.free = true, n
}

// Alter replaces a file's content by the result of change, like silent corruption. It is not counted as a call and is
// durable.
func (f *FS) Alter(name string, change func(content []byte) []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, errno := f.find(name)
	if errno != 0 {
		return &fs.PathError{Op: "alter", Path: name, Err: errno}
	}
	n.data = change(n.data)
	n.synced = len(n.data)
	return nil
}

// call counts a system call and returns the error that it must fail with, if any.
func (f *FS) call() error {
	if f.offAfter != 0 && f.calls >= f.offAfter {
		return ErrPowerOff
	}
	f.calls++
	if f.calls == f.failAt {
		return f.failErr
	}
	return nil
}

// begin locks the file system for one system call; op and name are for the error.
func (f *FS) begin(op, name string) error {
	f.mu.Lock()
	if err := f.call(); err != nil {
		return &fs.PathError{Op: op, Path: name, Err: err}
	}
	return nil
}

// pathError returns the error of a call, nil if errno is 0.
func pathError(op, name string, errno syscall.Errno) error {
	if errno == 0 {
		return nil
	}
	return &fs.PathError{Op: op, Path: name, Err: errno}
}

// Create implements [fsys.FS].
func (f *FS) Create(name string) (fsys.File, error) {
	defer f.mu.Unlock()
	if err := f.begin("open", name); err != nil {
		return nil, err
	}
	dir, base, errno := f.parent(name)
	if errno == 0 && dir.entries[base] != nil {
		errno = syscall.EEXIST
	}
	if errno != 0 {
		return nil, pathError("open", name, errno)
	}
	n := &node{}
	f.link(dir, base, n)
	return f.handle(n, name, true), nil
}

// Open implements [fsys.FS].
func (f *FS) Open(name string) (fsys.File, error) {
	defer f.mu.Unlock()
	if err := f.begin("open", name); err != nil {
		return nil, err
	}
	n, errno := f.find(name)
	if errno == 0 && n.dir {
		errno = syscall.EISDIR
	}
	if errno != 0 {
		return nil, pathError("open", name, errno)
	}
	return f.handle(n, name, false), nil
}

// Rename implements [fsys.FS].
func (f *FS) Rename(oldname, newname string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.call(); err != nil {
		return &os.LinkError{Op: "rename", Old: oldname, New: newname, Err: err}
	}
	if errno := f.rename(oldname, newname); errno != 0 {
		return &os.LinkError{Op: "rename", Old: oldname, New: newname, Err: errno}
	}
	return nil
}

// Link implements [fsys.FS].
func (f *FS) Link(oldname, newname string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.call()
	if err == nil {
		if errno := f.addName(oldname, newname); errno != 0 {
			err = errno
		}
	}
	if err != nil {
		return &os.LinkError{Op: "link", Old: oldname, New: newname, Err: err}
	}
	return nil
}

// Remove implements [fsys.FS].
func (f *FS) Remove(name string) error {
	defer f.mu.Unlock()
	if err := f.begin("remove", name); err != nil {
		return err
	}
	return pathError("remove", name, f.unlink(name))
}

// RemoveAll implements [fsys.FS].
func (f *FS) RemoveAll(name string) error {
	err := f.Remove(name)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if !errors.Is(err, syscall.ENOTEMPTY) {
		return err
	}
	entries, err := f.ReadDir(name)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := f.RemoveAll(name + "/" + e.Name()); err != nil {
			return err
		}
	}
	return f.Remove(name)
}

// MkdirAll implements [fsys.FS].
func (f *FS) MkdirAll(dir string) error {
	info, err := f.Stat(dir)
	if err == nil && !info.IsDir() {
		return pathError("mkdir", dir, syscall.ENOTDIR)
	}
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	parent := parentPath(dir)
	if err := f.MkdirAll(parent); err != nil {
		return err
	}
	if err := f.mkdir(dir); err != nil {
		return err
	}
	return f.SyncDir(parent)
}

// mkdir creates one directory.
func (f *FS) mkdir(name string) error {
	defer f.mu.Unlock()
	if err := f.begin("mkdir", name); err != nil {
		return err
	}
	dir, base, errno := f.parent(name)
	if errno == 0 && dir.entries[base] != nil {
		errno = syscall.EEXIST
	}
	if errno == 0 {
		f.link(dir, base, newDir())
	}
	return pathError("mkdir", name, errno)
}

// ReadDir implements [fsys.FS].
func (f *FS) ReadDir(dir string) ([]fs.DirEntry, error) {
	defer f.mu.Unlock()
	if err := f.begin("readdir", dir); err != nil {
		return nil, err
	}
	n, errno := f.findDir(dir)
	if errno != 0 {
		return nil, pathError("readdir", dir, errno)
	}
	var entries []fs.DirEntry
	for _, name := range n.names() {
		entries = append(entries, fs.FileInfoToDirEntry(n.entries[name].info(name)))
	}
	return entries, nil
}

// Stat implements [fsys.FS].
func (f *FS) Stat(name string) (fs.FileInfo, error) {
	defer f.mu.Unlock()
	if err := f.begin("stat", name); err != nil {
		return nil, err
	}
	n, errno := f.find(name)
	if errno != 0 {
		return nil, pathError("stat", name, errno)
	}
	return n.info(baseName(name)), nil
}

// SyncDir implements [fsys.FS].
func (f *FS) SyncDir(dir string) error {
	defer f.mu.Unlock()
	if err := f.begin("fsync", dir); err != nil {
		return err
	}
	n, errno := f.findDir(dir)
	if errno != 0 {
		return pathError("fsync", dir, errno)
	}
	n.syncDir()
	return nil
}
