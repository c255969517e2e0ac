package store

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sequins/internal/names"
)

// ours matches the names of files and directories that the directory of a content may have, if nobody but sequins has been there.
var ours = regexp.MustCompile(`^(MANIFEST\.json(\.\d+\.tmp)?|tmp|\d{5,}\.block(\.\d+\.tmp|\.corrupt)?)$`)

// Sweep removes what the last owner of the store left of a db: temporary files, directories of contents that have no manifest. It is
// called before anything else is done with the db. What cannot be removed does not keep it from going on, and is tried again at the next start.
func (s *Store) Sweep(db string) error {
	path := filepath.Join(s.data, db)
	entries, err := s.fs.ReadDir(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	errs := []error{err}
	for _, e := range entries {
		switch name := filepath.Join(path, e.Name()); {
		case e.IsDir() && names.Valid(e.Name()):
			hashes, err := subdirs(s.fs, name, isInputHash)
			errs = append(errs, err)
			for _, hash := range hashes {
				errs = append(errs, s.sweepContent(filepath.Join(name, hash)))
			}
			errs = append(errs, s.removeIfEmpty(name))
		case strings.HasPrefix(e.Name(), stateName+".") && strings.HasSuffix(e.Name(), tempSuffix):
			errs = append(errs, s.fs.Remove(name))
		}
	}
	return errors.Join(append(errs, s.removeIfEmpty(path))...)
}

// sweepContent removes the leftovers in a content's directory, or all of it if it has no manifest. If it then has a file that is not
// sequins' own, it stays as it is, and makes an error.
func (s *Store) sweepContent(path string) error {
	entries, err := s.fs.ReadDir(path)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == manifestName }) {
		for _, e := range entries {
			if !ours.MatchString(e.Name()) {
				return fmt.Errorf("%s is not a file of sequins", filepath.Join(path, e.Name()))
			}
		}
		if err := s.fs.SyncDir(path); err != nil { // the removal of the manifest may not be durable yet, and must be before that of the blocks
			return err
		}
		return s.fs.RemoveAll(path)
	}
	for _, e := range entries {
		if e.Name() == tempDir || strings.HasSuffix(e.Name(), tempSuffix) && ours.MatchString(e.Name()) {
			if err := s.fs.RemoveAll(filepath.Join(path, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}
