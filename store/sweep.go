package store

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"sequins/blocks"
	"sequins/internal/names"
)

// keepCorrupt is how long a block that was set aside is kept.
const keepCorrupt = 7 * 24 * time.Hour

// ours matches the names of files and directories that a version's directory may have, if nobody
// but sequins has been there; the second line is what the first sequins left in the same
// place.
var ours = regexp.MustCompile(`^((MANIFEST|BLOCKS|INPUTS)\.json(\.\d+\.tmp)?|tmp|\d{5,}\.block(\.\d+\.tmp|\.corrupt-\d+)?` +
	`|\.manifest|block-\d{5,}-[0-9a-f-]{36}\.sp[li])$`)

// sweep removes what the last owner of the store left: trash, temporary files, directories of
// versions that have no manifest, and corrupt blocks that were set aside long ago. Which versions
// are of use it does not know.
func (s *Store) sweep() error {
	dbs, err := s.subdirs(s.data, names.Valid)
	if err != nil {
		return err
	}
	var left []error
	for _, db := range dbs {
		if err := s.sweepDB(filepath.Join(s.data, db)); err != nil {
			left = append(left, err)
		}
	}
	s.left = errors.Join(left...)
	return nil
}

// Leftovers returns what could not be cleaned up when the store was opened, nil if
// everything was. It is tried again at the next start.
func (s *Store) Leftovers() error { return s.left }

// sweepDB is sweep for one db. What cannot be removed does not keep it from going on.
func (s *Store) sweepDB(path string) error {
	err := s.sweepTrash(path)
	versions, lerr := s.subdirs(path, isVersionDir)
	errs := []error{err, lerr}
	for _, v := range versions {
		errs = append(errs, s.sweepVersion(filepath.Join(path, v)))
	}
	if len(versions) == 0 && lerr == nil { // nobody would notice that the db has gone
		errs = append(errs, s.removeNote(path, markedName), s.removeNote(path, originName))
	}
	return errors.Join(append(errs, s.removeIfEmpty(path))...)
}

// sweepTrash deletes the versions of a db whose removal was begun, and the temporary files of notes
// that were not finished.
func (s *Store) sweepTrash(db string) error {
	entries, err := s.fs.ReadDir(db)
	if err != nil {
		return err
	}
	synced := false
	for _, e := range entries {
		if e.Name() == oldServedName && !e.IsDir() {
			if err := s.renameServed(db); err != nil {
				return err
			}
			continue
		}
		note := slices.ContainsFunc(notes, func(name string) bool { return strings.HasPrefix(e.Name(), name+".") })
		if note && strings.HasSuffix(e.Name(), tempSuffix) {
			if err := s.fs.Remove(filepath.Join(db, e.Name())); err != nil {
				return err
			}
		}
		if !strings.HasPrefix(e.Name(), trashPrefix) {
			continue
		}
		if !synced { // the renaming may not be durable yet, and must be before the deletion
			if err := s.fs.SyncDir(db); err != nil {
				return err
			}
			synced = true
		}
		if err := s.fs.RemoveAll(filepath.Join(db, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// renameServed gives the note of an earlier release its new name, durably.
func (s *Store) renameServed(db string) error {
	if err := s.fs.Rename(filepath.Join(db, oldServedName), filepath.Join(db, servedName)); err != nil {
		return err
	}
	return s.fs.SyncDir(db)
}

// sweepVersion removes the leftovers in a version's directory, or all of it if it has no manifest
// and nothing that is not sequins' own.
func (s *Store) sweepVersion(path string) error {
	_, err := s.fs.Stat(filepath.Join(path, manifestName))
	if errors.Is(err, fs.ErrNotExist) {
		stranger, err := s.stranger(path)
		if err != nil || stranger != "" {
			return err // of a stranger Create says so, when it is asked for this version
		}
		return s.fs.RemoveAll(path)
	}
	if err != nil {
		return err
	}
	entries, err := s.fs.ReadDir(path)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() == tempDir && e.IsDir() {
			err = s.sweepTemp(filepath.Join(path, tempDir))
		} else if s.leftover(e.Name()) {
			err = s.fs.Remove(filepath.Join(path, e.Name()))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sweepTemp empties a directory that [Dir.Temp] gave out, and keeps it.
func (s *Store) sweepTemp(path string) error {
	entries, err := s.fs.ReadDir(path)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := s.fs.RemoveAll(filepath.Join(path, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// leftover says whether a file of this name in a version's directory is of no use any more.
func (s *Store) leftover(name string) bool {
	_, seconds, aside := strings.Cut(name, blocks.CorruptSuffix)
	temp := strings.HasSuffix(name, tempSuffix)
	if !aside && !temp || !ours.MatchString(name) { // the expression is slow, and most names are of blocks
		return false
	}
	if temp {
		return true
	}
	at, err := strconv.ParseInt(seconds, 10, 64)
	return err != nil || s.now().Sub(time.Unix(at, 0)) > keepCorrupt
}

// stranger returns the name of a file in a version's directory that is not sequins' own, or "" if
// there is none. A directory that does not exist has none.
func (s *Store) stranger(path string) (string, error) {
	entries, err := s.fs.ReadDir(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	for _, e := range entries {
		if !ours.MatchString(e.Name()) {
			return filepath.Join(path, e.Name()), nil
		}
	}
	return "", nil
}

// refuseStranger returns an error if there is a stranger.
func (s *Store) refuseStranger(path string) error {
	stranger, err := s.stranger(path)
	if err == nil && stranger != "" {
		err = fmt.Errorf("%s is not a file of sequins: is the source inside the local store?", stranger)
	}
	return err
}
