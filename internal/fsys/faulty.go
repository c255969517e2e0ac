package fsys

import (
	"errors"
	"io/fs"
	"os"
	"sync"
	"syscall"
)

// Faulty is a file system in memory for tests of what happens when things go wrong. It counts
// system calls, so that a test can fail each of them in turn ([Faulty.FailAt]), stop the machine
// after each of them ([Faulty.PowerOffAfter]), or fill the disk ([Faulty.SetFree]); and it knows
// what has been fsynced, so that [Faulty.Crash] can return what a power loss leaves.
//
// What a call counts as: each method of File and FS is one system call, except MkdirAll and
// RemoveAll, which are one for each directory they look at, make, fsync or remove, as in reality.
//
// A Faulty may be used by several goroutines.
type Faulty struct {
	mu       sync.Mutex
	root     *node
	calls    int   // system calls made so far
	failAt   int   // the call that fails, counted like calls; 0: none
	failErr  error // with what
	offAfter int   // calls above this one find the power off; 0: never
	limited  bool  // whether free counts
	free     int64 // bytes that the disk still takes
	seq      int   // operations on directories so far
	open     int   // files not yet closed
}

// ErrPowerOff is what every system call returns once the power is off.
var ErrPowerOff = errors.New("the power is off")

var _ FS = (*Faulty)(nil)

// NewFaulty returns an empty file system whose calls succeed. Its root exists.
func NewFaulty() *Faulty { return &Faulty{root: newDir()} }

// Calls is the number of system calls made so far.
func (f *Faulty) Calls() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls
}

// OpenFiles is the number of files that were opened and not closed.
func (f *Faulty) OpenFiles() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.open
}

// FailAt makes the nth system call from now (1 is the next) fail with err. A write that fails
// has written half of its bytes; an fsync that fails has made nothing durable, nor will a later
// one; any other call has had no effect. Except Close, which fails and closes.
func (f *Faulty) FailAt(n int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failAt, f.failErr = f.calls+n, err
}

// PowerOffAfter turns the power off after n more system calls: those that follow fail with
// [ErrPowerOff] and do nothing.
func (f *Faulty) PowerOffAfter(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.offAfter = f.calls + n
	if f.offAfter == 0 {
		f.offAfter = -1
	}
}

// PowerOn undoes PowerOffAfter, and what was not fsynced is still there: as a process finds the
// file system that was started again after one that was killed.
func (f *Faulty) PowerOn() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.offAfter = 0
}

// SetFree limits the disk to n more bytes of file content; writes beyond fail with ENOSPC.
// Removing files gives their bytes back.
func (f *Faulty) SetFree(n int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.limited, f.free = true, n
}

// Alter gives the content of a file to change, and keeps what change returns: damage that no
// system call explains. It counts as no call and is durable.
func (f *Faulty) Alter(name string, change func(content []byte) []byte) error {
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

// call counts a system call and says whether it has to fail.
func (f *Faulty) call() error {
	if f.offAfter != 0 && f.calls >= f.offAfter {
		return ErrPowerOff
	}
	f.calls++
	if f.calls == f.failAt {
		return f.failErr
	}
	return nil
}

// begin locks the file system for one system call; op and name are for its error.
func (f *Faulty) begin(op, name string) error {
	f.mu.Lock()
	if err := f.call(); err != nil {
		return &fs.PathError{Op: op, Path: name, Err: err}
	}
	return nil
}

// pathError makes the error of a call, nil if errno is 0.
func pathError(op, name string, errno syscall.Errno) error {
	if errno == 0 {
		return nil
	}
	return &fs.PathError{Op: op, Path: name, Err: errno}
}

// Create implements [FS].
func (f *Faulty) Create(name string) (File, error) {
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

// Open implements [FS].
func (f *Faulty) Open(name string) (File, error) {
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

// Rename implements [FS].
func (f *Faulty) Rename(oldname, newname string) error {
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

// Remove implements [FS].
func (f *Faulty) Remove(name string) error {
	defer f.mu.Unlock()
	if err := f.begin("remove", name); err != nil {
		return err
	}
	return pathError("remove", name, f.unlink(name))
}

// RemoveAll implements [FS].
func (f *Faulty) RemoveAll(name string) error {
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

// MkdirAll implements [FS].
func (f *Faulty) MkdirAll(dir string) error {
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

// mkdir makes one directory.
func (f *Faulty) mkdir(name string) error {
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

// ReadDir implements [FS].
func (f *Faulty) ReadDir(dir string) ([]fs.DirEntry, error) {
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

// Stat implements [FS].
func (f *Faulty) Stat(name string) (fs.FileInfo, error) {
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

// SyncDir implements [FS].
func (f *Faulty) SyncDir(dir string) error {
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
