package store

import (
	"fmt"
	"path/filepath"
	"strings"
)

// originName is the file in a db's directory that holds the source that the versions of the db are from. No version can have
// this name.
const originName = "_SOURCE"

// maxOrigin bounds the length of that name, in bytes.
const maxOrigin = 16 << 10

// SetOrigin records, durably, the source that the served version of db is from. A source of more than 16 KiB, or with a line break,
// is not recorded.
func (s *Store) SetOrigin(db, source string) error {
	path, err := s.dbPath(db)
	if err != nil || len(source) >= maxOrigin || strings.ContainsAny(source, "\r\n") {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.writeNote(path, originName, source); err != nil {
		return fmt.Errorf("recording the source of db %s: %w", db, err)
	}
	return nil
}

// Origin returns what SetOrigin has recorded, "" if nothing was. A file without a whole line is [blocks.ErrCorrupt].
func (s *Store) Origin(db string) (string, error) {
	path, err := s.dbPath(db)
	if err != nil {
		return "", err
	}
	source, _, err := s.readLine(filepath.Join(path, originName), maxOrigin, "the name of a source")
	return source, err
}
