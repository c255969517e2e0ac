package local

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"sync"
	"syscall"

	"sequins/source"
)

const (
	// endSize is how much of each end of a file its mark depends on, in bytes. The formats have sync markers, statistics or an
	// index there, which differ between two files of one size. A change in the middle alone is not seen.
	endSize = 4 << 10
	// maxMarks bounds the marks that are remembered.
	maxMarks = 1 << 18
)

// marks are the marks of files that have been listed, so that a file is read again only if it may have changed. The zero value
// is ready.
type marks struct {
	mu    sync.Mutex
	known map[string]marked // by path
}

// A marked file had its mark when it had this inode.
type marked struct {
	source.File
	inode uint64
}

// of returns a file with its mark: a hash of its first and last bytes.
func (m *marks) of(path string, f source.File, info fs.FileInfo) (source.File, error) {
	m.mu.Lock()
	was := m.known[path]
	m.mu.Unlock()
	f.Mark = was.Mark
	if now := (marked{f, inode(info)}); now == was {
		return f, nil
	}
	f, info, err := mark(path, f.Name)
	if err != nil {
		return f, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil || len(m.known) >= maxMarks {
		m.known = make(map[string]marked)
	}
	m.known[path] = marked{f, inode(info)}
	return f, nil
}

func inode(info fs.FileInfo) uint64 {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	return s.Ino
}

// mark reads the ends of a file. The file is described as it is afterwards, so that one that is written meanwhile is new.
func mark(path, name string) (file source.File, info fs.FileInfo, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe that has replaced the file must not block
	if err != nil {
		return file, nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if info, err = f.Stat(); err != nil {
		return file, nil, err
	}
	if !info.Mode().IsRegular() {
		return file, nil, &fs.PathError{Op: "list", Path: path, Err: errNotRegular}
	}
	h, size := sha256.New(), info.Size()
	for _, from := range []int64{0, max(endSize, size-endSize)} {
		if _, err := io.Copy(h, io.NewSectionReader(f, from, min(endSize, max(0, size-from)))); err != nil {
			return file, nil, err
		}
	}
	if info, err = f.Stat(); err != nil {
		return file, nil, err
	}
	file = describe(name, info)
	file.Mark = hex.EncodeToString(h.Sum(nil)[:16])
	return file, info, nil
}
