// Package local is the source in a directory: <root>/<db>/<version>/<files>, on a
// local disk or a mounted file system.
//
// Listing a version follows symbolic links, so that a version can be published by
// creating one. A data file is read sequentially, and its pages are dropped from
// the page cache after reading, so that a load does not evict pages that are
// being served. No request reads from a source.
//
// A file that is overwritten during a read would give mixed content. So its size
// and modification time are compared with the listing when it is opened, at its
// end, and when it is closed.
package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/time/rate"

	"sequins/internal/pagecache"
	"sequins/source"
)

// Source is a directory of databases. It keeps no files open.
type Source struct {
	root  string
	marks marks
}

var _ source.Source = (*Source)(nil)

// New returns the source at path, which is a path or a file:// URL. It does not
// access the directory, which may be mounted later.
func New(path string) (*Source, error) {
	if len(path) >= 5 && strings.EqualFold(path[:5], "file:") {
		u, err := url.Parse(path)
		if err != nil {
			return nil, fmt.Errorf("source: %w", err)
		}
		if u.Host != "" && u.Host != "localhost" {
			return nil, fmt.Errorf("source: %s is on the host %s: a local path has three slashes, file:///%s%s",
				path, u.Host, u.Host, u.Path)
		}
		path = u.Path
	}
	if path == "" {
		return nil, errors.New("source: the path is empty")
	}
	root, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("source: %w", err)
	}
	return &Source{root: root}, nil
}

// Path returns a version's directory.
func (s *Source) Path(db, version string) string {
	return filepath.Join(s.root, db, version)
}

// ReadDir returns the names in a directory.
func (s *Source) ReadDir(ctx context.Context, dir string) (found source.Entries, err error) {
	p := filepath.Join(s.root, dir)
	if err := ctx.Err(); err != nil {
		return found, err
	}
	if dir != "" && !source.ValidFile(dir) {
		return found, &fs.PathError{Op: "list", Path: p, Err: fs.ErrInvalid}
	}
	entries, err := os.ReadDir(p)
	if err != nil {
		return found, err
	}
	for _, e := range entries {
		isDir := e.IsDir()
		if e.Type()&fs.ModeSymlink != 0 {
			info, err := os.Stat(filepath.Join(p, e.Name()))
			isDir = err != nil || info.IsDir() // what a link leads to is not gone because it is away
		}
		if isDir {
			found.Dirs = append(found.Dirs, e.Name())
		} else {
			found.Files = append(found.Files, e.Name())
		}
	}
	return found, nil
}

// Contents returns the contents of a version's directory. It fails if it cannot
// stat a file, since the number of files is the number of partitions.
func (s *Source) Contents(ctx context.Context, db, version string) (c source.Contents, err error) {
	dir, err := source.VersionPath(db, version)
	dir = filepath.Join(s.root, dir)
	if err != nil {
		return c, &fs.PathError{Op: "list", Path: dir, Err: err}
	}
	info, err := os.Stat(dir)
	if err != nil {
		return c, err
	}
	t := tree{dir: dir, marks: &s.marks, timed: hasChangeTimes(dir)}
	t.noteRenamed(info)
	c, err = source.Walk(ctx, &t)
	c.Renamed = t.renamed
	return c, err
}

// tree is a version's directory.
type tree struct {
	dir     string
	marks   *marks
	timed   bool      // see hasChangeTimes
	renamed time.Time // see source.Contents
}

func (t *tree) ReadDir(name string) ([]fs.DirEntry, error) {
	return os.ReadDir(filepath.Join(t.dir, name))
}

// Describe implements source.Tree. The content of a hidden entry is not looked at.
func (t *tree) Describe(name string, entry fs.DirEntry) (source.Marker, error) {
	p := filepath.Join(t.dir, name)
	if entry != nil && source.Hidden(entry.Name()) {
		info, err := os.Lstat(p)
		if err != nil {
			return source.Marker{}, err
		}
		return source.Marker{File: t.file(name, info), Dir: info.IsDir()}, nil
	}
	if entry != nil && entry.Type()&fs.ModeSymlink != 0 {
		if info, err := entry.Info(); err == nil {
			t.noteRenamed(info)
		}
	}
	info, err := stat(p)
	if err != nil {
		return source.Marker{}, err
	}
	if info.IsDir() {
		if entry != nil {
			t.noteRenamed(info)
		}
		return source.Marker{File: source.File{Name: name}, Dir: true}, nil
	}
	if !info.Mode().IsRegular() {
		return source.Marker{}, &fs.PathError{Op: "list", Path: p, Err: errNotRegular}
	}
	mark, read, err := t.marks.of(p, info)
	if read != nil { // it may have been written meanwhile
		info = read
	}
	f := t.file(name, info)
	f.Mark = mark
	return source.Marker{File: f}, err
}

// noteRenamed notes the time of a directory or a link.
func (t *tree) noteRenamed(info fs.FileInfo) {
	if at := changed(info); t.timed && at.After(t.renamed) {
		t.renamed = at
	}
}

// file returns what is known of a file without reading it.
func (t *tree) file(name string, info fs.FileInfo) source.File {
	f := source.File{Name: name, Size: info.Size(), ModTime: info.ModTime()}
	if t.timed {
		f.Written = changed(info)
	}
	return f
}

var errNotRegular = source.Fault(errors.New("not a regular file"))

// stat is os.Stat, but a dangling link is an error of another class
// than a file that has been removed.
func stat(path string) (fs.FileInfo, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, lerr := os.Lstat(path); lerr == nil {
			err = &fs.PathError{Op: "list", Path: path, Err: source.Fault(errors.New("dangling symbolic link"))}
		}
	}
	return info, err
}

// Open opens a file of a version for reading. The listed file is recognized by
// size and modification time: many mounted file systems change inode numbers.
func (s *Source) Open(ctx context.Context, db, version string, listed source.File, o source.ReadOptions) (io.ReadCloser, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	path, err := source.FilePath(db, version, listed.Name, o)
	path = filepath.Join(s.root, path)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	f, info, err := openRegular("open", path)
	if err != nil {
		return nil, err
	}
	if err = check(listed, "open", path, info); err == nil {
		_, err = f.Seek(o.Offset, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	adviseSequential(f)
	return &file{ctx: ctx, f: f, listed: listed, limiter: o.Bandwidth, pos: o.Offset, cache: pagecache.Of(f, o.Offset)}, nil
}

// openRegular opens a file and returns what it is. It does not wait for a pipe that has replaced the file, and does not open
// devices, which has side effects on some.
func openRegular(op, path string) (f *os.File, info fs.FileInfo, err error) {
	if info, err = stat(path); err == nil && info.Mode().IsRegular() {
		if f, err = os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0); err == nil {
			info, err = f.Stat()
		}
	}
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: op, Path: path, Err: errNotRegular}
	}
	if err != nil && f != nil {
		err = errors.Join(err, f.Close())
	}
	return f, info, err
}

func check(listed source.File, op, path string, info fs.FileInfo) error {
	if err := listed.Check(source.File{Size: info.Size(), ModTime: info.ModTime()}); err != nil {
		return &fs.PathError{Op: op, Path: path, Err: err}
	}
	return nil
}

// file reads sequentially and drops read pages from the page cache.
type file struct {
	ctx     context.Context
	f       *os.File
	listed  source.File
	limiter *rate.Limiter
	pos     int64 // offset of the next byte
	cache   pagecache.Window
}

func (r *file) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	if r.limiter != nil {
		p = p[:min(len(p), max(1, r.limiter.Burst()))]
	}
	n, err := r.f.Read(p)
	r.pos += int64(n)
	if werr := source.Wait(r.ctx, r.limiter, int64(n)); werr != nil {
		return 0, werr
	}
	if err == io.EOF {
		if cerr := r.unchanged("read"); cerr != nil {
			return 0, cerr
		}
	}
	r.cache.Read(r.pos)
	return n, err
}

// unchanged returns an error if the open file, or the file that now has its name,
// differs from the listed one. A deleted file is not an error.
func (r *file) unchanged(op string) error {
	info, err := r.f.Stat()
	if err != nil {
		return err
	}
	if err := check(r.listed, op, r.f.Name(), info); err != nil {
		return err
	}
	info, err = os.Stat(r.f.Name())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return check(r.listed, op, r.f.Name(), info)
}

func (r *file) Close() error {
	r.cache.Drop(r.pos)
	return errors.Join(r.unchanged("close"), r.f.Close())
}
