package config

import (
	"fmt"
	"io"
	"os"
	"syscall"
)

// ReadRegular reads a file of at most limit bytes. It refuses what is not a regular file, with links followed: reading a pipe or a
// device may take for ever.
func ReadRegular(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path) // before it is opened, which has effects on some devices
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // it may have been replaced by a pipe
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // read only: nothing is lost
	if info, err = f.Stat(); err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	return readAll(f, path, limit)
}

// readAll reads a file that is open.
func readAll(f io.Reader, path string, limit int64) ([]byte, error) {
	doc, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(doc)) > limit {
		return nil, fmt.Errorf("%s is larger than %d bytes", path, limit)
	}
	return doc, nil
}
