package store

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"sequins/internal/names"
)

// oldNotes are files that the earlier layout of the store, in which a version has one directory, has in a db's directory.
var oldNotes = []string{"SERVED", "_SERVED", "_ABSENT", "_MARKED", "_PIN", "_GATE", "_SOURCE"}

// RefuseOld returns an error if a db is in the earlier layout. What cannot be read is not.
func (s *Store) RefuseOld() error {
	dbs, err := s.subdirs(s.data, names.Valid)
	if err == nil {
		_, err = s.refuseOld(dbs)
	}
	return err
}

// refuseOld returns an error if one of some dbs is in the earlier layout, and why some of them cannot be read.
func (s *Store) refuseOld(dbs []string) (unread []error, err error) {
	for _, db := range dbs {
		old, err := s.findOld(filepath.Join(s.data, db))
		if old != "" {
			return nil, fmt.Errorf("%s is of an earlier release, whose stores are not read: empty the directory %s, and everything is loaded again", old, filepath.Dir(s.data))
		}
		unread = append(unread, err)
	}
	return unread, nil
}

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
