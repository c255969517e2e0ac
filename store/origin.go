package store

import (
	"fmt"
	"path/filepath"
	"strings"
)

// originName is the file in a db's directory that holds the source that the versions of the db are from, and on further lines the
// ids of those that are not. No version can have this name.
const originName = "_SOURCE"

// maxOrigin bounds the length of the name of a source, and maxOrigins that of the file, in bytes.
const (
	maxOrigin  = 16 << 10
	maxOrigins = 64 << 10
)

// SetOrigin records, durably, the source that the versions of db on disk are from, except for those with some ids. A source of
// more than 16 KiB, or with a line break, is not recorded.
func (s *Store) SetOrigin(db, source string, except []string) error {
	path, err := s.dbPath(db)
	if err != nil || len(source) >= maxOrigin || strings.ContainsAny(source, "\r\n") {
		return err
	}
	text := strings.Join(append([]string{source}, except...), "\n")
	if len(text) >= maxOrigins {
		return fmt.Errorf("recording the source of db %s: %d versions are from another one", db, len(except))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.writeNote(path, originName, text); err != nil {
		return fmt.Errorf("recording the source of db %s: %w", db, err)
	}
	return nil
}

// Origin returns what SetOrigin has recorded, "" if nothing was. A file that is cut off or too long is [blocks.ErrCorrupt].
func (s *Store) Origin(db string) (source string, except []string, err error) {
	path, err := s.dbPath(db)
	if err != nil {
		return "", nil, err
	}
	text, found, err := s.readLines(filepath.Join(path, originName), maxOrigins, "the name of a source")
	if err != nil || !found {
		return "", nil, err
	}
	lines := strings.Split(text, "\n")
	return lines[0], lines[1:], nil
}
