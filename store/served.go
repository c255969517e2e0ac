package store

import (
	"errors"
	"fmt"
	"path/filepath"

	"sequins/blocks"
	"sequins/internal/names"
)

// servedName is the file in a db's directory that holds the name of the version that clients were
// last answered from. No version can have this name. Earlier releases used oldServedName, which
// one could; the sweep renames it.
const (
	servedName    = "_SERVED"
	oldServedName = "SERVED"
)

// notes are the files in a db's directory that say something about the db.
var notes = []string{servedName, absentName, markedName, pinName, gateName, originName}

// SetServed remembers, durably, that clients are answered from a version of db from now on. The
// version need not be in the store: its blocks may all be on other nodes.
func (s *Store) SetServed(db, version string) error {
	if _, err := s.versionPath(db, version); err != nil {
		return err
	}
	known, err := s.Served(db)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && known == version && !s.undurable[db] {
		return nil
	}
	s.undurable[db] = true
	if err := s.writeNote(filepath.Join(s.data, db), servedName, diskName(version)); err != nil {
		return fmt.Errorf("remembering version %s of db %s: %w", version, db, err)
	}
	delete(s.undurable, db)
	return nil
}

// Served returns the version of db that clients were last answered from, "" if none is known. A
// file that holds no name of a version is [blocks.ErrCorrupt].
func (s *Store) Served(db string) (string, error) {
	path, err := s.dbPath(db)
	if err != nil {
		return "", err
	}
	const what = "the name of a version"
	path = filepath.Join(path, servedName)
	name, found, err := s.readLines(path, names.Max+1, what)
	if err != nil || !found {
		return "", err
	}
	version, ok := versionID(name) // not if it is several lines
	if !ok {
		return "", &blocks.CorruptError{Path: path, Page: -1, Reason: "does not hold " + what}
	}
	return version, nil
}

// ForgetServed takes SetServed, SetAbsent, SetMarked, SetPin and SetGate back: the db is gone. Its directory goes too, unless
// there are versions in it.
func (s *Store) ForgetServed(db string) error {
	path, err := s.dbPath(db)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, name := range notes {
		errs = append(errs, s.removeNote(path, name))
	}
	return errors.Join(append(errs, s.removeIfEmpty(path))...)
}
