package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"sequins/blocks"
	"sequins/internal/fsys"
	"sequins/internal/names"
)

// The store's directory:
//
//	sequins.lock                          held under flock, with the owner's pid
//	data/<db>/<version>/MANIFEST.json     the plan; a directory without one is not a version
//	data/<db>/<version>+00001/            a revision of the version: see version.Revise; "+" in a name is %2B
//	data/<db>/<version>/BLOCKS.json       what is known of small blocks: see Dir.Known
//	data/<db>/<version>/INPUTS.json       what blocks were made from: see Staging.SetInputs
//	data/<db>/<version>/00042.block       a complete block
//	data/<db>/<version>/00042.block.7.tmp a block being written
//	data/<db>/<version>/00042.block.corrupt-1767225600  set aside at that Unix time
//	data/<db>/<version>/tmp/              sort runs and the like; emptied at start-up
//	data/<db>/.trash-7/                   a version being removed
//	data/<db>/_SERVED                     the version that clients were last answered from
//	data/<db>/_SOURCE                     the source that it is from: see SetOrigin
//
// Every file gets the name under which it counts by a rename, when it is whole and fsynced. The
// temporary name differs with each attempt, so that a writer that was left behind by the removal
// of its version cannot publish into the next directory of that name.
const (
	dataDir     = "data"
	tempDir     = "tmp"
	tempSuffix  = ".tmp"
	trashPrefix = ".trash-"
)

// Store is the directory in which a node keeps its blocks, by db and version. Its methods, and
// those of its Dirs, may be called from several goroutines.
type Store struct {
	data string // the directory data/
	fs   fsys.FS
	lock *os.File
	now  func() time.Time

	names atomic.Uint64 // makes temporary names differ

	// mu is held for writing while a version's directory comes or goes.
	mu   sync.RWMutex
	dirs map[string]*Dir // those given out, by path
	left error           // see Leftovers
	// undurable are the dbs whose record of SetServed could not be made durable,
	// although it may be in place.
	undurable map[string]bool
}

// Open opens the store in dir, which is made if it does not exist. It takes the store's lock,
// which another process may hold (see [ErrLocked]), and removes what was left unfinished by the
// last owner.
func Open(dir string) (*Store, error) {
	if err := fsys.OS.MkdirAll(dir); err != nil {
		return nil, fmt.Errorf("opening the store: %w", err)
	}
	held, err := lock(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the store: %w", err)
	}
	s, err := OpenFS(fsys.OS, dir)
	if err != nil {
		return nil, errors.Join(err, held.Close())
	}
	s.lock = held
	return s, nil
}

// OpenFS is Open on any file system, and without a lock: for tests of what a failing
// disk does.
func OpenFS(fsys fsys.FS, dir string) (*Store, error) { return open(fsys, dir, time.Now) }

func open(fsys fsys.FS, dir string, now func() time.Time) (*Store, error) {
	s := &Store{data: filepath.Join(dir, dataDir), fs: fsys, now: now, dirs: map[string]*Dir{}, undurable: map[string]bool{}}
	if err := fsys.MkdirAll(s.data); err != nil {
		return nil, fmt.Errorf("opening the store: %w", err)
	}
	if err := s.sweep(); err != nil {
		return nil, fmt.Errorf("opening the store: %w", err)
	}
	return s, nil
}

// Close lets another process open the store.
func (s *Store) Close() error {
	if s.lock == nil {
		return nil
	}
	return s.lock.Close()
}

// LockFile returns the file that holds the store's lock, for a process that writes into the store and may
// outlive this one: as long as it has inherited the file, nobody can open the store. nil if the store has
// no lock.
func (s *Store) LockFile() *os.File { return s.lock }

// dbPath returns the directory of a db.
func (s *Store) dbPath(db string) (string, error) {
	if !names.Valid(db) {
		return "", fmt.Errorf("%q is not a name of a db", db)
	}
	return filepath.Join(s.data, db), nil
}

// versionPath returns the directory of a version.
func (s *Store) versionPath(db, version string) (string, error) {
	path, err := s.dbPath(db)
	if err != nil {
		return "", err
	}
	if !validVersion(version) {
		return "", fmt.Errorf("db %s: %q is not a name of a version", db, version)
	}
	return filepath.Join(path, diskName(version)), nil
}

// Databases lists the dbs of which there is a version, sorted.
func (s *Store) Databases() ([]string, error) {
	dbs, err := s.subdirs(s.data, names.Valid)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, db := range dbs {
		if versions, err := s.Versions(db); err != nil || len(versions) > 0 {
			found = append(found, db)
		}
	}
	return found, nil
}

// Versions lists the versions of a db, in ascending order, complete or not, also those whose manifest
// cannot be looked at. Of an unknown db there are none.
func (s *Store) Versions(db string) ([]string, error) {
	path, err := s.dbPath(db)
	if err != nil {
		return nil, err
	}
	versions, err := s.subdirs(path, isVersionDir)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, v := range versions {
		if _, err := s.fs.Stat(filepath.Join(path, v, manifestName)); !errors.Is(err, fs.ErrNotExist) {
			id, _ := versionID(v)
			found = append(found, id)
		}
	}
	slices.Sort(found) // the order of ids differs from that of directories
	return found, nil
}

// subdirs lists the directories in path that can be a db's or a version's by their names, sorted. There
// are none in a directory that does not exist.
func (s *Store) subdirs(path string, valid func(name string) bool) ([]string, error) {
	entries, err := s.fs.ReadDir(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() && valid(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// Dir returns the directory of a version. The error wraps [fs.ErrNotExist] if there is none,
// [blocks.ErrCorrupt] if its manifest is damaged, and [ErrManifestVersion] if that is of another release;
// in the last two cases Create replaces it and Remove removes it.
func (s *Store) Dir(db, version string) (*Dir, error) {
	path, err := s.versionPath(db, version)
	if err != nil {
		return nil, err
	}
	if d, err := s.given(path); d != nil || err != nil {
		return d, err
	}
	m, err := s.readManifest(db, version, path) // without the lock: a file that does not answer keeps nobody else waiting
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dirs[path] == nil {
		s.dirs[path] = &Dir{store: s, path: path, manifest: m}
	}
	return s.dirs[path], nil
}

// given returns the Dir of this path that was given out and is still there; nil if there is none.
func (s *Store) given(path string) (*Dir, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.dirs[path]
	if d == nil {
		return nil, nil
	}
	_, err := s.fs.Stat(filepath.Join(path, manifestName))
	if errors.Is(err, fs.ErrNotExist) {
		s.forget(path) // somebody has deleted it behind our back
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return d, nil
}

func (s *Store) readManifest(db, version, path string) (Manifest, error) {
	name := filepath.Join(path, manifestName)
	data, err := readFile(s.fs, name, maxManifest)
	if err != nil {
		return Manifest{}, err
	}
	m, err := decodeManifest(data, name)
	if err == nil && (m.DB != db || m.Version != version) {
		reason := fmt.Sprintf("is of version %s of db %s", m.Version, m.DB)
		err = &blocks.CorruptError{Path: name, Page: -1, Reason: reason}
	}
	return m, err
}

// tempName returns a name for a file that will be called final, never the same twice.
func (s *Store) tempName(final string) string {
	return final + "." + strconv.FormatUint(s.names.Add(1), 10) + tempSuffix
}

// Remove removes a version, in one step as far as any process or power loss can tell. The error
// wraps [fs.ErrNotExist] if there is none. Blocks that are open stay readable.
func (s *Store) Remove(db, version string) error {
	path, err := s.versionPath(db, version)
	if err != nil {
		return err
	}
	trash, err := s.remove(path)
	if err == nil {
		err = s.empty(trash)
	}
	if err != nil {
		return fmt.Errorf("removing version %s of db %s: %w", version, db, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.removeIfEmpty(filepath.Dir(path))
}

func (s *Store) remove(path string) (trash string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.fs.Stat(filepath.Join(path, manifestName)); err != nil {
		return "", err
	}
	return s.discard(path)
}

// discard renames a version's directory to a name that makes it trash, durably.
func (s *Store) discard(path string) (trash string, err error) {
	db := filepath.Dir(path)
	name := filepath.Join(db, trashPrefix+strconv.FormatUint(s.names.Add(1), 10))
	if err := s.fs.Rename(path, name); err != nil {
		return "", err
	}
	s.forget(path)
	if err := s.fs.SyncDir(db); err != nil {
		return "", err // the next start empties the trash
	}
	return name, nil
}

// forget makes the Dir of this path, if one was given out, one that no block can be written in.
func (s *Store) forget(path string) {
	if d := s.dirs[path]; d != nil {
		d.gone = true
		delete(s.dirs, path)
	}
}

// empty deletes trash.
func (s *Store) empty(trash string) error {
	if trash == "" {
		return nil
	}
	return s.fs.RemoveAll(trash)
}

// removeIfEmpty removes the directory of a db that has no version any more.
func (s *Store) removeIfEmpty(path string) error {
	entries, err := s.fs.ReadDir(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || len(entries) > 0 {
		return err
	}
	return s.fs.Remove(path)
}
