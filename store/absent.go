package store

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"sequins/blocks"
	"sequins/internal/fsys"
)

// absentName is the file in a db's directory that holds since when the source has not listed the
// db. No version can have this name.
const absentName = "_ABSENT"

// maxTime bounds the length of the time in that file, in bytes.
const maxTime = 64

// SetAbsent records, durably, since when the source has not listed db.
func (s *Store) SetAbsent(db string, since time.Time) error {
	path, err := s.dbPath(db)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.writeNote(path, absentName, since.UTC().Format(time.RFC3339)); err != nil {
		return fmt.Errorf("recording the absence of db %s: %w", db, err)
	}
	return nil
}

// AbsentSince returns what SetAbsent has recorded; zero if the source listed db when it was last
// read. A file that does not hold a time is [blocks.ErrCorrupt].
func (s *Store) AbsentSince(db string) (time.Time, error) {
	path, err := s.dbPath(db)
	if err != nil {
		return time.Time{}, err
	}
	path = filepath.Join(path, absentName)
	data, err := s.readNote(path, maxTime)
	if err != nil || data == nil {
		return time.Time{}, err
	}
	since, err := time.Parse(time.RFC3339, strings.TrimSuffix(string(data), "\n"))
	if err != nil {
		return time.Time{}, &blocks.CorruptError{Path: path, Page: -1, Reason: "does not hold a time"}
	}
	return since, nil
}

// ClearAbsent takes SetAbsent back: the source lists db.
func (s *Store) ClearAbsent(db string) error {
	path, err := s.dbPath(db)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.removeNote(path, absentName)
}

// writeNote writes one line to a small file in a db's directory, atomically and durably.
func (s *Store) writeNote(path, name, line string) error {
	if err := s.fs.MkdirAll(path); err != nil {
		return err
	}
	if err := s.fs.SyncDir(s.data); err != nil {
		return err
	}
	f, err := s.fs.Create(s.tempName(filepath.Join(path, name)))
	if err != nil {
		return err
	}
	if _, err := f.Write([]byte(line + "\n")); err != nil {
		return errors.Join(err, f.Close(), s.fs.Remove(f.Name()))
	}
	return fsys.Publish(s.fs, f, filepath.Join(path, name))
}

// readFile reads a file of at most limit bytes. A longer one, and anything that is no regular file, is [blocks.ErrCorrupt]: it
// does not hold what it should.
func readFile(f fsys.FS, path string, limit int64) ([]byte, error) {
	data, err := fsys.ReadFile(f, path, limit)
	switch {
	case errors.Is(err, fsys.ErrTooLong):
		return nil, &blocks.CorruptError{Path: path, Page: -1, Offset: limit, Reason: "too long"}
	case errors.Is(err, fsys.ErrNotRegular):
		return nil, &blocks.CorruptError{Path: path, Page: -1, Reason: "not a regular file"}
	}
	return data, err
}

// readNote reads such a file, of at most limit bytes; nil if there is none.
func (s *Store) readNote(path string, limit int64) ([]byte, error) {
	data, err := readFile(s.fs, path, limit)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

// readLines reads such a file without its last line end. A file that does not end with one is [blocks.ErrCorrupt].
func (s *Store) readLines(path string, limit int64, what string) (lines string, found bool, err error) {
	data, err := s.readNote(path, limit)
	if err != nil || data == nil {
		return "", false, err
	}
	lines, whole := strings.CutSuffix(string(data), "\n")
	if !whole {
		return "", false, &blocks.CorruptError{Path: path, Page: -1, Reason: "does not hold " + what}
	}
	return lines, true, nil
}

// removeNote removes such a file, if it is there.
func (s *Store) removeNote(path, name string) error {
	err := s.fs.Remove(filepath.Join(path, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = s.fs.SyncDir(path)
	}
	return err
}
