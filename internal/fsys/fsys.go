// Package fsys owns access to the file system. [OS] is the real one; package faultfs simulates one in memory, with failures
// and power loss, for tests.
//
// [Publish], and [WriteFile] for a file whose content is in memory, are the only ways to create a file: it is written under a
// temporary name, fsynced, renamed, and the rename is made durable by an fsync of the directory. A file under its final name is complete, whatever failed or lost power
// before; a file under a temporary name may be deleted at start.
//
// Paths are those of the operating system. Errors are those of package os: *fs.PathError and *os.LinkError around a
// syscall.Errno, so that errors.Is works with fs.ErrNotExist and syscall.ENOSPC.
package fsys

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
)

// File is an open file. A file from [FS.Create] is written sequentially, without seeking or truncating.
type File interface {
	io.Reader
	io.Writer
	io.ReaderAt
	io.Closer
	// Sync returns when everything written is on stable storage. After an error the content is undefined, even if a
	// second Sync succeeds, as the kernel drops pages that it could not write. The file must be discarded.
	Sync() error
	// Name returns the path by which the file was created or opened.
	Name() string
}

// FS is the part of a file system that sequins uses.
type FS interface {
	// Create creates a file for reading and writing. It fails if name exists.
	Create(name string) (File, error)
	// Open opens a regular file for reading.
	Open(name string) (File, error)
	// Rename renames a file or directory. It replaces an existing file, and fails if newname is a directory.
	Rename(oldname, newname string) error
	// Link makes newname another name of the file oldname. It fails if newname exists, and on file systems without hard
	// links.
	Link(oldname, newname string) error
	// Remove deletes a file or an empty directory.
	Remove(name string) error
	// RemoveAll deletes name and everything below it. It succeeds if name does not exist.
	RemoveAll(name string) error
	// MkdirAll creates dir and its missing parents, and fsyncs the parent of each directory that it created.
	MkdirAll(dir string) error
	// ReadDir lists a directory, sorted by name.
	ReadDir(dir string) ([]fs.DirEntry, error)
	// Stat returns the FileInfo of a file or directory.
	Stat(name string) (fs.FileInfo, error)
	// SyncDir makes creations, renames and removals in dir durable.
	SyncDir(dir string) error
}

// Publish makes the finished file f durable under its final name: fsync, close, rename, fsync of the parent directory.
// f is always closed.
//
// If an error occurs up to the rename, the temporary file is removed and final is unchanged. If the last step fails,
// the complete file is at its final name, but a power loss may undo the rename.
func Publish(fsys FS, f File, final string) error {
	temp := f.Name()
	if err := Finish(fsys, f); err != nil {
		return fmt.Errorf("publishing %s: %w", final, err)
	}
	if err := fsys.Rename(temp, final); err != nil {
		return discard(fsys, temp, fmt.Errorf("publishing %s: %w", final, err))
	}
	if err := fsys.SyncDir(filepath.Dir(final)); err != nil {
		return fmt.Errorf("publishing %s: %w", final, err)
	}
	return nil
}

// WriteFile gives the file final a content in one step, by way of the temporary file temp, which must not exist. After an error, final is as it was, except
// that Publish may have failed in its last step.
func WriteFile(fsys FS, temp, final string, data []byte) error {
	f, err := fsys.Create(temp)
	if err != nil {
		return err
	}
	if _, err := f.Write(data); err != nil {
		return discard(fsys, temp, errors.Join(err, f.Close()))
	}
	return Publish(fsys, f, final)
}

// Finish makes the content of f durable under its temporary name, and closes f. If that fails, it removes the file.
func Finish(fsys FS, f File) error {
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return discard(fsys, f.Name(), err)
	}
	return nil
}

// discard removes the temporary file after the failure err, and returns err.
func discard(fsys FS, temp string, err error) error {
	if rerr := fsys.Remove(temp); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
		return errors.Join(err, rerr)
	}
	return err
}

// ReadFile returns the content of a file of at most limit bytes. For a longer file it returns an error that wraps
// [ErrTooLong], without reading all of it.
func ReadFile(fsys FS, name string, limit int64) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() // only read from, so Close cannot lose data
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, &fs.PathError{Op: "read", Path: name, Err: fmt.Errorf("%w of %d bytes", ErrTooLong, limit)}
	}
	return data, nil
}

// ErrTooLong is returned by [ReadFile] for a file above its limit.
var ErrTooLong = errors.New("file exceeds its size limit")
