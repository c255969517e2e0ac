package config

import (
	"errors"
	"fmt"
	"io"
	"os"

	"sequins/internal/fsys"
)

// readRegular reads a file of at most limit bytes. It refuses what is not a regular file, with links followed: reading a pipe or a
// device may take for ever.
func readRegular(path string, limit int64) ([]byte, error) {
	f, err := fsys.OpenRegular(path, os.O_RDONLY)
	if errors.Is(err, fsys.ErrNotRegular) {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // read only: nothing is lost
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
