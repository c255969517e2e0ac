package store

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"sequins/blocks"
	"sequins/internal/names"
)

// keepCorrupt is how long a block that was set aside is kept.
const keepCorrupt = 7 * 24 * time.Hour

// ours matches the names of files and directories that the directory of a content or a version may have, if nobody
// but sequins has been there; the second line is what the first sequins left in the same
// place.
var ours = regexp.MustCompile(`^((MANIFEST|BLOCKS)\.json(\.\d+\.tmp)?|tmp|\d{5,}\.block(\.\d+\.tmp|\.corrupt-\d+)?` +
	`|\.manifest|block-\d{5,}-[0-9a-f-]{36}\.sp[li])$`)

// sweep removes what the last owner of the store left: trash, temporary files, directories of
// contents that have no manifest, and corrupt blocks that were set aside long ago. Which contents
// are of use it does not know.
//
// A store of an earlier layout is left as it is, and an error.
func (s *Store) sweep() error {
	dbs, err := s.subdirs(s.data, names.Valid)
	if err != nil {
		return err
	}
	left, err := s.refuseOld(dbs)
	if err != nil {
		return err
	}
	for _, db := range dbs {
		if err := s.sweepDB(db); err != nil {
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
func (s *Store) sweepDB(db string) error {
	path := filepath.Join(s.data, db)
	versions, err := s.subdirs(path, names.Valid)
	errs := []error{err, s.sweepTrash(path, versions)}
	for _, v := range versions {
		errs = append(errs, s.sweepVersion(filepath.Join(path, v)))
	}
	return errors.Join(append(errs, s.sweepState(db, path), s.removeIfEmpty(path))...)
}

// sweepTrash deletes the contents of a db whose removal was begun, and temporary files beside them.
func (s *Store) sweepTrash(db string, versions []string) error {
	entries, err := s.fs.ReadDir(db)
	if err != nil {
		return err
	}
	synced := false
	for _, e := range entries {
		name := filepath.Join(db, e.Name())
		if strings.HasPrefix(e.Name(), stateName+".") && strings.HasSuffix(e.Name(), tempSuffix) {
			if err := s.fs.Remove(name); err != nil {
				return err
			}
		}
		if !strings.HasPrefix(e.Name(), trashPrefix) {
			continue
		}
		if !synced { // the renaming may not be durable yet, and must be before the deletion
			if err := s.syncAll(db, versions); err != nil {
				return err
			}
			synced = true
		}
		if err := s.fs.RemoveAll(name); err != nil {
			return err
		}
	}
	return nil
}

// syncAll makes the directories of a db and of its versions durable.
func (s *Store) syncAll(db string, versions []string) error {
	errs := []error{s.fs.SyncDir(db)}
	for _, v := range versions {
		errs = append(errs, s.fs.SyncDir(filepath.Join(db, v)))
	}
	return errors.Join(errs...)
}

// sweepState removes the State of a db without contents that says nothing of use: nobody would notice that the db has gone.
func (s *Store) sweepState(db, path string) error {
	versions, err := s.subdirs(path, names.Valid)
	if err != nil || len(versions) > 0 {
		return err
	}
	state, data, err := s.readState(db, filepath.Join(path, stateName))
	if errors.Is(err, blocks.ErrCorrupt) {
		return nil //nolint:nilerr // State returns it
	}
	if err != nil || data == nil || !state.idle() {
		return err
	}
	return s.removeState(path)
}

// sweepVersion removes the leftovers in the directories of a version's contents, and its own if no content is left and
// there is nothing that is not sequins' own.
func (s *Store) sweepVersion(path string) error {
	hashes, err := s.subdirs(path, isInputHash)
	if err != nil {
		return err
	}
	var errs []error
	for _, hash := range hashes {
		errs = append(errs, s.sweepContent(filepath.Join(path, hash)))
	}
	if hashes, err = s.subdirs(path, isInputHash); err == nil && len(hashes) == 0 {
		err = s.sweepContent(path) // which it is not, and may have been for an earlier release
	}
	return errors.Join(append(errs, err)...)
}

// removeOurs removes a directory in which there is nothing that is not sequins' own.
func (s *Store) removeOurs(path string) error {
	stranger, err := s.stranger(path, isOurs)
	if err != nil || stranger != "" {
		return err // of a stranger Create says so, when it is asked for this version
	}
	return s.fs.RemoveAll(path)
}

// sweepContent removes the leftovers in a content's directory, or all of it if it has no manifest
// and nothing that is not sequins' own.
func (s *Store) sweepContent(path string) error {
	_, err := s.fs.Stat(filepath.Join(path, manifestName))
	if errors.Is(err, fs.ErrNotExist) {
		return s.removeOurs(path)
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

// leftover reports whether a file of this name in a content's directory is of no use any more.
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

func isOurs(e fs.DirEntry) bool { return ours.MatchString(e.Name()) }

// stranger returns the name of a file in a directory that is not sequins' own, or "" if there is none. A directory that does not
// exist has none.
func (s *Store) stranger(path string, own func(fs.DirEntry) bool) (string, error) {
	entries, err := s.fs.ReadDir(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	for _, e := range entries {
		if !own(e) {
			return filepath.Join(path, e.Name()), nil
		}
	}
	return "", nil
}

// refuseStranger returns an error if there is a stranger where a content is to be made.
func (s *Store) refuseStranger(path string) error {
	stranger, err := s.stranger(filepath.Dir(path), func(e fs.DirEntry) bool { return isOurs(e) || e.IsDir() && isInputHash(e.Name()) })
	if err == nil && stranger == "" {
		stranger, err = s.stranger(path, isOurs)
	}
	if err == nil && stranger != "" {
		err = fmt.Errorf("%s is not a file of sequins: is the source inside the local store?", stranger)
	}
	return err
}
