package blocks

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"sequins/internal/fsys"
)

// servedName is the file in a db's directory that holds the name of the version that clients were
// last answered from.
const servedName = "SERVED"

// SetServed remembers, durably, that clients are answered from a version of db from now on. The
// version need not be in the store: its blocks may all be on other nodes.
func (s *Store) SetServed(db, version string) error {
	if _, err := s.versionPath(db, version); err != nil {
		return err
	}
	if known, err := s.Served(db); err == nil && known == version {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.setServed(filepath.Join(s.data, db), version); err != nil {
		return fmt.Errorf("remembering version %s of db %s: %w", version, db, err)
	}
	return nil
}

func (s *Store) setServed(path, version string) error {
	if err := s.fs.MkdirAll(path); err != nil {
		return err
	}
	if err := s.fs.SyncDir(s.data); err != nil {
		return err
	}
	f, err := s.fs.Create(s.tempName(filepath.Join(path, servedName)))
	if err != nil {
		return err
	}
	if _, err := f.Write([]byte(version + "\n")); err != nil {
		return errors.Join(err, f.Close(), s.fs.Remove(f.Name()))
	}
	return fsys.Publish(s.fs, f, filepath.Join(path, servedName))
}

// Served returns the version of db that clients were last answered from, "" if none is known. A
// file that holds no name of a version is [ErrCorrupt].
func (s *Store) Served(db string) (string, error) {
	path, err := s.dbPath(db)
	if err != nil {
		return "", err
	}
	path = filepath.Join(path, servedName)
	data, err := fsys.ReadFile(s.fs, path, maxName+1)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil && !errors.Is(err, fsys.ErrTooLong) {
		return "", err
	}
	version, ok := strings.CutSuffix(string(data), "\n")
	if err != nil || !ok || !validName(version) {
		return "", &CorruptError{Path: path, Page: -1, Reason: "does not hold the name of a version"}
	}
	return version, nil
}

// ForgetServed takes SetServed back: the db is gone. Its directory goes too, unless there are
// versions in it.
func (s *Store) ForgetServed(db string) error {
	path, err := s.dbPath(db)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	err = s.fs.Remove(filepath.Join(path, servedName))
	if errors.Is(err, fs.ErrNotExist) {
		return s.removeIfEmpty(path)
	}
	if err == nil {
		err = s.fs.SyncDir(path)
	}
	return errors.Join(err, s.removeIfEmpty(path))
}
