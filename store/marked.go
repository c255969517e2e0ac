package store

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

// markedName is the file in a db's directory that says that a version of the db had a marker of its job.
// No version can have this name.
const markedName = "_MARKED"

// SetMarked records, durably, that a version of db had a marker of its job. The next Open forgets it if there is no
// version of db in the store.
func (s *Store) SetMarked(db string) error {
	path, err := s.dbPath(db)
	if err != nil {
		return err
	}
	if known, err := s.Marked(db); known && err == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.writeNote(path, markedName, "yes"); err != nil {
		return fmt.Errorf("recording that db %s has markers: %w", db, err)
	}
	return nil
}

// ForgetMarked removes, durably, what SetMarked has recorded.
func (s *Store) ForgetMarked(db string) error {
	path, err := s.dbPath(db)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.removeNote(path, markedName); err != nil {
		return fmt.Errorf("forgetting that db %s had markers: %w", db, err)
	}
	return nil
}

// Marked returns what SetMarked has recorded.
func (s *Store) Marked(db string) (bool, error) {
	path, err := s.dbPath(db)
	if err != nil {
		return false, err
	}
	_, err = s.fs.Stat(filepath.Join(path, markedName))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
