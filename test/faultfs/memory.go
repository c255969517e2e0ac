package faultfs

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// node is a file or a directory of an [FS], apart from its name.
type node struct {
	data    []byte // a file's content as processes see it
	synced  int    // durable length; files only grow
	lost    bool   // an fsync failed: the rest never becomes durable
	links   int    // names and open files that refer to it
	dir     bool
	entries map[string]*node // a directory's entries as processes see them
	durable map[string]*node // entries as of the last fsync of the directory
	pending []*dirOp         // operations since then
}

// dirOp is a change of one directory that is not yet durable.
type dirOp struct {
	seq     int
	dir     *node
	node    *node
	remove  string // name that is removed, if any
	add     string // name that is added, if any; together with remove, a rename within dir
	needs   *dirOp // the half of a rename across directories that adds the new name
	durable bool
}

func newDir() *node {
	return &node{dir: true, entries: map[string]*node{}, durable: map[string]*node{}}
}

func (n *node) names() []string { return slices.Sorted(maps.Keys(n.entries)) }

// record applies an operation to directory n, as processes see it, and records it as pending.
func (f *FS) record(n *node, op *dirOp) *dirOp {
	f.seq++
	op.seq, op.dir = f.seq, n
	n.pending = append(n.pending, op)
	op.apply(n.entries)
	return op
}

// apply applies op to a directory's entries.
func (op *dirOp) apply(entries map[string]*node) {
	if op.remove != "" && entries[op.remove] == op.node {
		delete(entries, op.remove)
	}
	if op.add != "" {
		entries[op.add] = op.node
	}
}

// syncDir makes all pending operations of the directory durable. For a rename into another directory, this includes the
// new name: no journaling file system loses both names.
func (n *node) syncDir() {
	for _, op := range n.pending {
		if half := op.needs; half != nil && !half.durable {
			half.durable = true
			half.apply(half.dir.durable)
			half.dir.pending = slices.DeleteFunc(half.dir.pending, func(o *dirOp) bool { return o == half })
		}
		op.durable = true
		op.apply(n.durable)
	}
	n.pending = nil
}

func (f *FS) link(dir *node, name string, n *node) {
	n.links++
	f.record(dir, &dirOp{node: n, add: name})
}

// release frees the bytes of n when nothing refers to it any more.
func (f *FS) release(n *node) {
	n.links--
	if n.links == 0 && f.limited {
		f.free += int64(len(n.data))
	}
}

func (f *FS) unlink(name string) syscall.Errno {
	dir, base, errno := f.parent(name)
	if errno != 0 {
		return errno
	}
	n := dir.entries[base]
	switch {
	case n == nil:
		return syscall.ENOENT
	case n.dir && len(n.entries) > 0:
		return syscall.ENOTEMPTY
	}
	f.record(dir, &dirOp{node: n, remove: base})
	f.release(n)
	return 0
}

func (f *FS) rename(oldname, newname string) syscall.Errno {
	from, oldbase, errno := f.parent(oldname)
	if errno != 0 {
		return errno
	}
	to, newbase, errno := f.parent(newname)
	if errno != 0 {
		return errno
	}
	n, target := from.entries[oldbase], to.entries[newbase]
	switch {
	case n == nil:
		return syscall.ENOENT
	case target == n:
		return 0
	case target != nil && target.dir:
		return syscall.EEXIST
	case target != nil && n.dir:
		return syscall.ENOTDIR
	}
	if from == to {
		f.record(from, &dirOp{node: n, remove: oldbase, add: newbase})
	} else {
		half := f.record(to, &dirOp{node: n, add: newbase})
		f.record(from, &dirOp{node: n, remove: oldbase, needs: half})
	}
	if target != nil {
		f.release(target)
	}
	return 0
}

// addName gives a file another name.
func (f *FS) addName(oldname, newname string) syscall.Errno {
	n, errno := f.find(oldname)
	if errno != 0 {
		return errno
	}
	dir, base, errno := f.parent(newname)
	switch {
	case errno != 0:
		return errno
	case n.dir:
		return syscall.EPERM
	case dir.entries[base] != nil:
		return syscall.EEXIST
	}
	f.link(dir, base, n)
	return 0
}

// clean returns name as an absolute path with slashes.
func clean(name string) string { return path.Clean("/" + filepath.ToSlash(name)) }

func parentPath(name string) string { return path.Dir(clean(name)) }

func baseName(name string) string { return path.Base(clean(name)) }

func (f *FS) find(name string) (*node, syscall.Errno) {
	n := f.root
	for part := range strings.SplitSeq(clean(name), "/") {
		if part == "" {
			continue
		}
		if !n.dir {
			return nil, syscall.ENOTDIR
		}
		if n = n.entries[part]; n == nil {
			return nil, syscall.ENOENT
		}
	}
	return n, 0
}

func (f *FS) findDir(name string) (*node, syscall.Errno) {
	n, errno := f.find(name)
	if errno == 0 && !n.dir {
		errno = syscall.ENOTDIR
	}
	return n, errno
}

// parent returns the directory of name, and its last element.
func (f *FS) parent(name string) (*node, string, syscall.Errno) {
	if clean(name) == "/" {
		return nil, "", syscall.EBUSY
	}
	dir, errno := f.findDir(parentPath(name))
	return dir, baseName(name), errno
}

// file is an open file of an [FS].
type file struct {
	fs       *FS
	node     *node
	name     string
	off      int
	writable bool
	closed   bool
}

// handle opens a file.
func (f *FS) handle(n *node, name string, writable bool) *file {
	f.open++
	n.links++
	return &file{fs: f, node: n, name: name, writable: writable}
}

func (f *file) Name() string { return f.name }

// begin locks the file system for a call on the file.
func (f *file) begin(op string) error {
	if err := f.fs.begin(op, f.name); err != nil {
		return err
	}
	if f.closed {
		return &fs.PathError{Op: op, Path: f.name, Err: fs.ErrClosed}
	}
	return nil
}

// noEffect reports whether err means that the call was not made at all.
func noEffect(err error) bool { return errors.Is(err, ErrPowerOff) || errors.Is(err, fs.ErrClosed) }

func (f *file) Read(p []byte) (int, error) {
	defer f.fs.mu.Unlock()
	if err := f.begin("read"); err != nil {
		return 0, err
	}
	n := copy(p, f.node.data[min(f.off, len(f.node.data)):])
	f.off += n
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (f *file) ReadAt(p []byte, off int64) (int, error) {
	defer f.fs.mu.Unlock()
	if err := f.begin("read"); err != nil {
		return 0, err
	}
	if off < 0 {
		return 0, pathError("read", f.name, syscall.EINVAL)
	}
	n := copy(p, f.node.data[min(off, int64(len(f.node.data))):])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *file) Write(p []byte) (int, error) {
	defer f.fs.mu.Unlock()
	failed := f.begin("write")
	switch {
	case noEffect(failed):
		return 0, failed
	case failed != nil:
		return f.append(p[:len(p)/2]), failed
	case !f.writable:
		return 0, pathError("write", f.name, syscall.EBADF)
	}
	if n := f.append(p); n < len(p) {
		return n, pathError("write", f.name, syscall.ENOSPC)
	}
	return len(p), nil
}

// append writes as much of p as fits on the disk.
func (f *file) append(p []byte) int {
	if f.fs.limited {
		p = p[:min(int64(len(p)), max(f.fs.free, 0))]
		f.fs.free -= int64(len(p))
	}
	f.node.data = append(f.node.data, p...)
	f.off = len(f.node.data)
	return len(p)
}

func (f *file) Sync() error {
	defer f.fs.mu.Unlock()
	if err := f.begin("fsync"); err != nil {
		f.node.lost = f.node.lost || !noEffect(err)
		return err
	}
	if !f.node.lost {
		f.node.synced = len(f.node.data)
	}
	return nil
}

func (f *file) Close() error {
	defer f.fs.mu.Unlock()
	err := f.begin("close")
	if !f.closed {
		f.closed = true
		f.fs.open--
		f.fs.release(f.node)
	}
	return err
}

// info returns the FileInfo of n.
func (n *node) info(name string) fs.FileInfo { return fileInfo{name, int64(len(n.data)), n.dir} }

type fileInfo struct {
	name string
	size int64
	dir  bool
}

func (i fileInfo) Name() string       { return i.name }
func (i fileInfo) Size() int64        { return i.size }
func (i fileInfo) ModTime() time.Time { return time.Time{} }
func (i fileInfo) IsDir() bool        { return i.dir }
func (i fileInfo) Sys() any           { return nil }
func (i fileInfo) Mode() fs.FileMode {
	if i.dir {
		return fs.ModeDir | 0o750
	}
	return 0o640
}
