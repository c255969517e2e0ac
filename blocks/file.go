package blocks

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// blockFile is a block on the disk. Its descriptor is opened when something has to be read, and stays open as long
// as there are not too many: see descriptors. The map, if there is one, stays until Close.
type blockFile struct {
	path    string
	size    int64
	modTime int64  // µs since 1970
	footer  []byte // by which a file that is opened again is known to be the same; nil until it has been read
	data    []byte // the map of the whole file; nil if it is not mapped

	fd      atomic.Pointer[descriptor]
	used    atomic.Bool // since descriptors last looked
	slot    int         // in descriptors, under its mutex; -1 if it is not there
	opening sync.Mutex
	closed  bool // under opening
}

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

// openBlockFile opens the file at path. The descriptor stays open; keep or drop it.
func openBlockFile(path string) (*blockFile, error) {
	d, err := openDescriptor(path)
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(d.fd, &st); err != nil {
		return nil, errors.Join(&fs.PathError{Op: "stat", Path: path, Err: err}, d.release())
	}
	f := &blockFile{path: path, size: st.Size, modTime: modTime(&st), slot: -1}
	f.fd.Store(d)
	return f, nil
}

// openDescriptor opens a file. Where the process has no descriptors left it closes one of another block.
func openDescriptor(path string) (*descriptor, error) {
	for {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		switch {
		case err == nil:
			d := &descriptor{fd: fd}
			d.refs.Store(1)
			return d, nil
		case err == unix.EINTR:
		case (err == unix.EMFILE || err == unix.ENFILE) && openFiles.evict():
		default:
			return nil, &fs.PathError{Op: "open", Path: path, Err: err}
		}
	}
}

// acquire returns the file's descriptor, which is opened if it is not. It must be released.
func (f *blockFile) acquire() (*descriptor, error) {
	if d := f.cached(); d != nil {
		return d, nil
	}
	f.opening.Lock()
	defer f.opening.Unlock()
	if d := f.cached(); d != nil {
		return d, nil
	}
	if f.closed {
		return nil, &fs.PathError{Op: "read", Path: f.path, Err: fs.ErrClosed}
	}
	d, err := f.reopen()
	if err != nil {
		return nil, err
	}
	d.refs.Add(1)
	f.fd.Store(d)
	openFiles.add(f)
	return d, nil
}

// cached is acquire where the file is open.
func (f *blockFile) cached() *descriptor {
	d := f.fd.Load()
	if d == nil || !d.acquire() {
		return nil
	}
	if !f.used.Load() {
		f.used.Store(true)
	}
	return d
}

// reopen opens the file again, under the name that [Dir.SetAside] may have given it. A block that has been loaded again
// under its old name has the same footer and the same bytes.
func (f *blockFile) reopen() (*descriptor, error) {
	d, err := f.openAs(f.path)
	if !errors.Is(err, ErrCorrupt) {
		return d, err
	}
	for _, aside := range setAside(f.path) {
		if d, err := f.openAs(aside); err == nil {
			return d, nil
		}
	}
	return nil, err
}

// CorruptSuffix follows the name of a block's file that was set aside as damaged; the Unix time of that follows it. A
// [Reader] of the block finds the file under this name too.
const CorruptSuffix = ".corrupt-"

// setAside lists the names under which the block at path has been set aside.
func setAside(path string) (names []string) {
	entries, _ := os.ReadDir(filepath.Dir(path)) // without its directory the block has gone
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), filepath.Base(path)+CorruptSuffix) {
			names = append(names, filepath.Join(filepath.Dir(path), e.Name()))
		}
	}
	return names
}

// openAs opens the file at path, and checks that it ends in the footer that the block had.
func (f *blockFile) openAs(path string) (*descriptor, error) {
	d, err := openDescriptor(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &CorruptError{Path: f.path, Page: -1, Reason: "the file has been removed"}
	}
	if err != nil {
		return nil, err
	}
	randomAccess(d.fd, f.size)
	buf := make([]byte, len(f.footer))
	n, err := pread(d.fd, buf, f.size-int64(len(buf)))
	if err == io.EOF || n == len(buf) && !bytes.Equal(buf, f.footer) {
		err = &CorruptError{Path: f.path, Page: -1, Offset: f.size - int64(len(buf)), Reason: "the footer has changed since the block was opened"}
	}
	if err != nil {
		return nil, errors.Join(err, d.release())
	}
	return d, nil
}

// ReadAt implements io.ReaderAt.
func (f *blockFile) ReadAt(p []byte, off int64) (int, error) {
	d, err := f.acquire()
	if err != nil {
		return 0, err
	}
	n, err := pread(d.fd, p, off)
	if e := d.release(); err == nil {
		err = e
	}
	return n, err
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

// keep leaves the descriptor open after the block has been opened, among those that are closed when there are too
// many; drop closes it.
func (f *blockFile) keep() { openFiles.add(f) }

func (f *blockFile) drop() error {
	openFiles.remove(f)
	if d := f.fd.Swap(nil); d != nil {
		return d.release()
	}
	return nil
}

// currentSize returns the length that the file has now, in bytes.
func (f *blockFile) currentSize() (int64, error) {
	d := f.cached()
	if d == nil {
		st, err := os.Stat(f.path)
		if err != nil {
			return 0, err
		}
		return st.Size(), nil
	}
	var st unix.Stat_t
	err := unix.Fstat(d.fd, &st)
	return st.Size, errors.Join(err, d.release())
}

// Close unmaps and closes the file.
func (f *blockFile) Close() error {
	f.opening.Lock()
	defer f.opening.Unlock()
	f.closed = true
	return errors.Join(f.unmapFile(), f.drop())
}

// descriptors bounds how many files of blocks are open. It closes those that have not been used for the longest
// time, about: the hand of a clock goes round over them, and what was used since it last came by stays.
type descriptors struct {
	mu    sync.Mutex
	limit int
	files []*blockFile
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
func (o *descriptors) add(f *blockFile) {
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
func (o *descriptors) remove(f *blockFile) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.take(f)
}

func (o *descriptors) take(f *blockFile) {
	if f.slot < 0 {
		return
	}
	last := o.files[len(o.files)-1]
	o.files[f.slot], last.slot = last, f.slot
	o.files[len(o.files)-1] = nil
	o.files, f.slot = o.files[:len(o.files)-1], -1
}

func (o *descriptors) open() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.files)
}

// Usage returns what the blocks of the process take: how many of their files are open, how many are mapped into memory,
// and how many bytes of pages of small blocks are on the heap.
func Usage() (files, maps int, held int64) {
	return openFiles.open(), int(mappedFiles.Load()), heldBytes.Load()
}

// mappedFiles is how many files are mapped.
var mappedFiles atomic.Int64

// mapWhole maps the file if not too many are mapped yet. Without a map all is read.
func (f *blockFile) mapWhole() {
	if f.size == 0 {
		return
	}
	if mappedFiles.Add(1) > int64(maxMaps()) {
		mappedFiles.Add(-1)
		return
	}
	d := f.cached()
	if d != nil {
		f.data = mapFile(d.fd, f.size)
		_ = d.release() // it is open as before
	}
	if f.data == nil {
		mappedFiles.Add(-1)
	}
}

func (f *blockFile) unmapFile() error {
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
