package local

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"sequins/internal/sleep"
	"sequins/source"
)

// WriteSmall replaces a hidden file of a database's directory, and returns when it would survive a power loss. Writers
// exclude each other by a lock on the directory. On a file system without such locks, such as NFS, two that write at the
// same instant may both succeed.
func (s *Source) WriteSmall(ctx context.Context, db, name string, data, old []byte) (err error) {
	if err := source.CheckHidden(db, name); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Join(s.root, db))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	if err := lock(ctx, dir); err != nil {
		return &fs.PathError{Op: "lock", Path: dir.Name(), Err: err}
	}
	path := filepath.Join(dir.Name(), name)
	if err := source.CheckSmall(ctx, s, db, name, old); err != nil {
		return &fs.PathError{Op: "write", Path: path, Err: err}
	}
	if err := replace(path, data); err != nil {
		return err
	}
	return dir.Sync()
}

// lock locks a directory until it is closed.
func lock(ctx context.Context, dir *os.File) error {
	for {
		err := syscall.Flock(int(dir.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case errors.Is(err, syscall.EBADF), errors.Is(err, syscall.ENOTSUP), errors.Is(err, syscall.ENOLCK):
			return nil // not supported
		case !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR):
			return err
		}
		if err := sleep.For(ctx, lockPause); err != nil {
			return err
		}
	}
}

// lockPause is the pause between two attempts to lock. A lock is held for some milliseconds.
const lockPause = 5 * time.Millisecond

// replace replaces a file. Hadoop's checksums of the former one are removed first: they would not match.
func replace(path string, data []byte) (err error) {
	dir, name := filepath.Split(path)
	f, err := os.CreateTemp(dir, "."+name+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(data)
	if err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(dir, "."+name+".crc")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Rename(f.Name(), path)
}
