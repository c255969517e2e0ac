// Package spill keeps in a temporary file what a builder cannot keep in memory.
package spill

import (
	"errors"
	"io"
	"os"
)

// File is a temporary file that is created when something is first appended to it. It has no name, so that it is gone
// when it is closed or the process ends.
type File struct {
	Dir  string // "" is that of the system
	file *os.File
	size int64
}

// Append writes b to the end of the file and returns the offset at which it begins.
func (f *File) Append(b []byte) (offset int64, err error) {
	if f.file == nil {
		if f.file, err = create(f.Dir); err != nil {
			return 0, err
		}
	}
	if _, err := f.file.WriteAt(b, f.size); err != nil {
		return 0, err
	}
	offset = f.size
	f.size += int64(len(b))
	return offset, nil
}

func create(dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, "spill-*.tmp")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Size returns how many bytes have been appended.
func (f *File) Size() int64 { return f.size }

// ReadAt reads what has been appended.
func (f *File) ReadAt(b []byte, off int64) (int, error) { return f.file.ReadAt(b, off) }

// Reader returns a reader of all that has been appended.
func (f *File) Reader() io.Reader { return io.NewSectionReader(f, 0, f.size) }

// Close deletes the file, if there is one.
func (f *File) Close() {
	if f.file != nil {
		_ = f.file.Close() // of a file that nobody needs any more
		f.file, f.size = nil, 0
	}
}
