// Package fsys is the file system as sequins uses it: [OS], the real one, and [Faulty], one in
// memory that fails and loses power where a test wants it to.
//
// It owns the one way in which a file comes into being: written under a temporary name, fsynced,
// renamed, and the rename made durable by an fsync of the directory. [Publish] does the last three
// steps. Whoever finds a file under its final name finds the whole of it, whatever failed or lost
// power before; whoever finds one under a temporary name at start-up may delete it.
//
// Paths are those of the operating system. Errors are those of package os: *fs.PathError and
// *os.LinkError around a syscall.Errno, so errors.Is knows fs.ErrNotExist and syscall.ENOSPC.
package fsys

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
)

// File is an open file. One that [FS.Create] made is written from its beginning to its end; there
// is no seeking and no truncating.
type File interface {
	io.Reader
	io.Writer
	io.ReaderAt
	io.Closer
	// Sync returns when what was written is on stable storage. After an error nothing is known
	// of the content, and a second Sync that succeeds does not change that: the kernel forgets
	// pages that it could not write. The file has to be given up.
	Sync() error
	// Name is the path that the file was created or opened by.
	Name() string
}

// FS is the part of a file system that sequins needs.
type FS interface {
	// Create makes a new file for reading and writing; it is an error if name exists.
	Create(name string) (File, error)
	// Open opens a file for reading.
	Open(name string) (File, error)
	// Rename gives a file or directory another name. A file that has that name already is
	// replaced; a directory that has it is an error.
	Rename(oldname, newname string) error
	// Remove deletes a file or an empty directory.
	Remove(name string) error
	// RemoveAll deletes name and all below it; that nothing is there is no error.
	RemoveAll(name string) error
	// MkdirAll makes dir and its parents where they are missing, and fsyncs the parent of
	// each that it made.
	MkdirAll(dir string) error
	// ReadDir lists a directory, sorted by name.
	ReadDir(dir string) ([]fs.DirEntry, error)
	// Stat describes a file or directory.
	Stat(name string) (fs.FileInfo, error)
	// SyncDir makes what was created, renamed and removed in dir durable.
	SyncDir(dir string) error
}

// Publish makes the finished file f durable and gives it its final name: fsync, close, rename,
// fsync of the parent directory. f is closed in every case.
//
// On an error before or in the rename, the temporary file is removed and final is what it was
// before. On an error in the last step the file is at its final name, and whole, but a power loss
// may undo the rename.
func Publish(fsys FS, f File, final string) error {
	temp := f.Name()
	if err := syncClose(f); err != nil {
		return discard(fsys, temp, fmt.Errorf("publishing %s: %w", final, err))
	}
	if err := fsys.Rename(temp, final); err != nil {
		return discard(fsys, temp, fmt.Errorf("publishing %s: %w", final, err))
	}
	if err := fsys.SyncDir(filepath.Dir(final)); err != nil {
		return fmt.Errorf("publishing %s: %w", final, err)
	}
	return nil
}

// syncClose fsyncs and closes f, which is closed whatever happens.
func syncClose(f File) error {
	err := f.Sync()
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// discard removes the temporary file after the failure err, which it returns.
func discard(fsys FS, temp string, err error) error {
	if rerr := fsys.Remove(temp); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
		return errors.Join(err, rerr)
	}
	return err
}

// ReadFile returns the content of a file of at most limit bytes. A longer one is an error that
// wraps [ErrTooLong], found without reading all of it.
func ReadFile(fsys FS, name string, limit int64) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() // nothing was written, so closing cannot lose anything
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, &fs.PathError{Op: "read", Path: name, Err: ErrTooLong}
	}
	return data, nil
}

// ErrTooLong is what [ReadFile] returns for a file longer than its limit.
var ErrTooLong = errors.New("file is longer than it may be")
