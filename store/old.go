package store

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// oldNotes are files that the earlier layout of the store, in which a version has one directory, has in a db's directory.
var oldNotes = []string{"SERVED", "_SERVED", "_ABSENT", "_MARKED", "_PIN", "_GATE", "_SOURCE"}

// findOld returns a file of the earlier layout in the directory of a db, "" if there is none.
func (s *Store) findOld(db string) (string, error) {
	entries, err := s.fs.ReadDir(db)
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		name := filepath.Join(db, e.Name())
		if !e.IsDir() {
			if slices.Contains(oldNotes, e.Name()) {
				return name, nil
			}
			continue
		}
		if strings.HasPrefix(e.Name(), trashPrefix) {
			continue
		}
		manifest := filepath.Join(name, manifestName)
		if _, err := s.fs.Stat(manifest); err == nil {
			return manifest, nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	return "", nil
}
