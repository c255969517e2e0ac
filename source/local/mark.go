package local

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"sync"
	"syscall"
	"time"
)

const (
	// endSize is how much of each end of a file its mark depends on, in bytes. The formats have sync markers, statistics or an
	// index there, which differ between two files of one size. A change in the middle alone is not seen.
	endSize = 4 << 10
	// maxMarks bounds the marks that are remembered.
	maxMarks = 1 << 18
	// timePrecision is more than the precision of the times of any file system.
	timePrecision = 3 * time.Second
)

// marks are the marks of files that have been listed, so that a file is read again only if it may have changed. The zero value
// is ready.
type marks struct {
	mu    sync.Mutex
	known map[string]knownMark // by path
}

type knownMark struct {
	marked
	mark string
}

// A marked file had its mark when it had these attributes.
type marked struct {
	size              int64
	inode             uint64
	modified, changed time.Time
}

func attributes(info fs.FileInfo) marked {
	m := marked{size: info.Size(), modified: info.ModTime(), changed: changed(info)}
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		m.inode = s.Ino
	}
	return m
}

// of returns the mark of a file, a hash of its first and last bytes, and what it was when it had been read; nil if the mark was
// known. It is empty for a file that may not be read: its load says so, if it is data.
func (m *marks) of(path string, info fs.FileInfo) (mark string, read fs.FileInfo, err error) {
	m.mu.Lock()
	was, known := m.known[path]
	m.mu.Unlock()
	if known && was.marked == attributes(info) {
		return was.mark, nil, nil
	}
	mark, read, err = readMark(path)
	if err != nil {
		if errors.Is(err, fs.ErrPermission) {
			err = nil
		}
		return "", nil, err
	}
	// A file that has just been written may be written again without a difference in its times.
	if newest := attributes(read); time.Since(newest.modified) < timePrecision || time.Since(newest.changed) < timePrecision {
		return mark, read, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil || len(m.known) >= maxMarks {
		m.known = make(map[string]knownMark)
	}
	m.known[path] = knownMark{attributes(read), mark}
	return mark, read, nil
}

// readMark reads the ends of a file, and returns what it was afterwards.
func readMark(path string) (mark string, info fs.FileInfo, err error) {
	f, info, err := openRegular("list", path)
	if err != nil {
		return "", nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	h, end := sha256.New(), make([]byte, endSize)
	for _, from := range []int64{0, max(endSize, info.Size()-endSize)} {
		n, err := f.ReadAt(end, from)
		if err != nil && !errors.Is(err, io.EOF) {
			return "", nil, err
		}
		h.Write(end[:n])
	}
	info, err = f.Stat()
	return hex.EncodeToString(h.Sum(nil)[:16]), info, err
}
