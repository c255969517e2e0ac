package local

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"sequins/source"
)

var _ source.Creator = (*Source)(nil)

// Create begins a file of a version under a hidden temporary name beside the final one.
func (s *Source) Create(ctx context.Context, db, version, name string, size int64) (source.FileWriter, error) {
	if err := errors.Join(ctx.Err(), source.CheckCreate(db, version, name)); err != nil {
		return nil, err
	}
	dir := filepath.Join(s.root, db, version)
	if err := makeDirs(dir); err != nil {
		return nil, err
	}
	temporary := source.UnfinishedName(name, "*")
	f, err := os.CreateTemp(dir, temporary)
	if err != nil {
		return nil, err
	}
	w := &created{ctx: ctx, f: f, path: filepath.Join(dir, name), size: size}
	if err := f.Chmod(0o644); err != nil {
		return nil, errors.Join(err, w.Abort())
	}
	return w, nil
}

// makeDirs creates a directory and those above it, durably.
func makeDirs(dir string) error {
	err := os.Mkdir(dir, 0o755)
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil
	case errors.Is(err, fs.ErrNotExist):
		if err := makeDirs(filepath.Dir(dir)); err != nil {
			return err
		}
		return makeDirs(dir)
	case err != nil:
		return err
	}
	return syncDir(filepath.Dir(dir))
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// created is a file that is being written.
type created struct {
	ctx           context.Context
	f             *os.File // nil after Commit or Abort
	path          string   // the final one
	size, written int64
}

func (c *created) Write(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := c.f.Write(p)
	c.written += int64(n)
	return n, err
}

// Commit syncs the file, renames it and syncs the directory. Hadoop's checksums of a former file of that name are removed
// first: they would not match.
func (c *created) Commit() error {
	dir, name := filepath.Split(c.path)
	err := errors.Join(c.ctx.Err(), source.CheckWritten(c.written, c.size))
	if err == nil {
		err = c.f.Sync()
	}
	if err == nil {
		err = removeFile(filepath.Join(dir, "."+name+".crc"))
	}
	if err == nil {
		err = os.Rename(c.f.Name(), c.path)
	}
	if err != nil {
		return errors.Join(&fs.PathError{Op: "write", Path: c.path, Err: err}, c.Abort())
	}
	err = errors.Join(c.f.Close(), syncDir(dir))
	c.f = nil
	return err
}

// Abort removes the temporary file.
func (c *created) Abort() error {
	if c.f == nil {
		return nil
	}
	f := c.f
	c.f = nil
	return errors.Join(f.Close(), removeFile(f.Name()))
}

// Remove removes files of a version, and its directory if that is empty then.
func (s *Source) Remove(ctx context.Context, db, version string, names ...string) error {
	dir, err := s.versionDir(db, version)
	if err != nil {
		return err
	}
	for _, name := range names {
		if !source.ValidFile(name) {
			return &fs.PathError{Op: "remove", Path: filepath.Join(dir, name), Err: fs.ErrInvalid}
		}
		if err := errors.Join(ctx.Err(), removeFile(filepath.Join(dir, name))); err != nil {
			return err
		}
	}
	err = removeFile(dir)
	if errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, syscall.EEXIST) {
		return nil
	}
	return err
}

// removeFile removes a file or an empty directory, if it is there.
func removeFile(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
