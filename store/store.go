package store

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"sequins/internal/content"
	"sequins/internal/fsys"
	"sequins/internal/names"
)

// The store's directory:
//
//	sequins.lock                          held under flock, with the owner's pid
//	data/<db>/STATE.json                   see State
//	data/<db>/<version>/<input>/           a content, by the name and the hash of its input:
//	    MANIFEST.json                      the plan; a directory without one is not a content, or not any more
//	    00042.block                        a complete block
//	    00042.block.7.tmp                  a block being written
//	    00042.block.corrupt                set aside
//	    tmp/                               sort runs and the like; removed at start-up
//
// Every file gets the name under which it counts by a rename, when it is whole and fsynced. The
// temporary name differs with each attempt, so that a writer that was left behind by the removal
// of its content cannot publish into the next directory of that name.
const (
	dataDir    = "data"
	tempDir    = "tmp"
	tempSuffix = ".tmp"
)

// Store is the directory in which a node keeps its blocks, by db and content. Its methods, and
// those of its Dirs, may be called from several goroutines.
type Store struct {
	data string // the directory data/
	fs   fsys.FS
	lock *os.File

	names atomic.Uint64 // makes temporary names differ, also from those of a load process of the last owner that has not ended yet

	changing sync.Map // the paths of contents that are being created or removed, which can take long: see alone
	dbs      sync.Map // the *dbDirs, by path: see at
}

// dbDir is the directory of a db. While the disk hangs on it, only who uses this db waits.
type dbDir struct {
	path string
	// mu is held for writing while a content comes or goes.
	mu       sync.RWMutex
	dirs     map[string]*Dir // those given out, by path; in any other Dir no block can be written
	unsynced bool            // the State may not be durable: its last writing has failed
}

// at returns the dbDir with a path.
func (s *Store) at(path string) *dbDir {
	d, _ := s.dbs.LoadOrStore(path, &dbDir{path: path, dirs: make(map[string]*Dir)})
	return d.(*dbDir)
}

// of returns the dbDir that the content with a path is in.
func (s *Store) of(path string) *dbDir { return s.at(filepath.Dir(filepath.Dir(path))) }

// Open opens the store in dir, which is made if it does not exist. It takes the store's lock,
// which another process may hold (see [ErrLocked]).
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
func OpenFS(fsys fsys.FS, dir string) (*Store, error) {
	s := &Store{data: filepath.Join(dir, dataDir), fs: fsys}
	s.names.Store(uint64(rand.Uint32()) << 20)
	if err := fsys.MkdirAll(s.data); err != nil {
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

func (s *Store) dbPath(db string) (string, error) {
	if !names.Valid(db) {
		return "", fmt.Errorf("%q is not a name of a db", db)
	}
	return filepath.Join(s.data, db), nil
}

func (s *Store) contentPath(db string, in content.Input) (string, error) {
	path, err := s.dbPath(db)
	if err != nil {
		return "", err
	}
	if !in.Valid() || in.Name == stateName {
		return "", fmt.Errorf("db %s: %.300q with the hash %.100q is not a name of a version with the hash of an input", db, in.Name, in.Hash)
	}
	return filepath.Join(path, in.Name, in.Hash), nil
}

// Databases lists the dbs that have a directory, sorted. It looks into none, as the disk may hang on one.
func (s *Store) Databases() ([]string, error) { return subdirs(s.fs, s.data, names.Valid) }

// Contents lists the inputs of which there is a content of a db, in ascending order of names and hashes, complete or not, also
// those whose manifest cannot be looked at. Of an unknown db there are none.
func (s *Store) Contents(db string) ([]content.Input, error) {
	path, err := s.dbPath(db)
	if err != nil {
		return nil, err
	}
	all, err := inputs(s.fs, path)
	return slices.DeleteFunc(all, func(in content.Input) bool {
		_, err := s.fs.Stat(filepath.Join(path, in.Name, in.Hash, manifestName))
		return errors.Is(err, fs.ErrNotExist)
	}), err
}

// inputs lists what can be contents in the directory of a db by the names of their directories, in ascending order.
func inputs(f fsys.FS, db string) (found []content.Input, err error) {
	versions, err := subdirs(f, db, names.Valid)
	if err != nil {
		return nil, err
	}
	for _, name := range versions {
		hashes, err := subdirs(f, filepath.Join(db, name), isInputHash)
		if err != nil {
			return nil, err
		}
		for _, hash := range hashes {
			found = append(found, content.Input{Name: name, Hash: hash})
		}
	}
	return found, nil
}

// isInputHash reports whether a directory of this name can be that of a content.
func isInputHash(name string) bool { return content.Input{Name: "x", Hash: name}.Valid() }

// subdirs lists the directories in path that can be those of dbs, versions or contents by their names, sorted. There
// are none in a directory that does not exist.
func subdirs(f fsys.FS, path string, valid func(name string) bool) ([]string, error) {
	entries, err := f.ReadDir(path)
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

// Dir returns the directory of the content of an input. The error wraps [fs.ErrNotExist] if there is none, and
// [blocks.ErrCorrupt] if its manifest is damaged or of another release; then Create replaces it and Remove removes it.
func (s *Store) Dir(db string, in content.Input) (*Dir, error) {
	path, err := s.contentPath(db, in)
	if err != nil {
		return nil, err
	}
	if d, err := s.given(path); d != nil || err != nil {
		return d, err
	}
	name := filepath.Join(path, manifestName)
	data, err := manifestFile.read(s.fs, name) // without the lock: a file that does not answer keeps nobody else waiting
	if err != nil {
		return nil, err
	}
	m, err := decodeManifest(data, name)
	if err == nil && (m.DB != db || m.Content().Input != in) {
		err = damaged(name, fmt.Errorf("is of input %s of version %s of db %s", m.Input, m.Version, m.DB))
	}
	if err != nil {
		return nil, err
	}
	owner := s.of(path)
	owner.mu.Lock()
	defer owner.mu.Unlock()
	if owner.dirs[path] == nil {
		owner.dirs[path] = &Dir{store: s, db: owner, path: path, manifest: m}
	}
	return owner.dirs[path], nil
}

// given returns the Dir of this path that was given out and is still there; nil if there is none. It makes no dbDir: other nodes ask for any db, also for
// one that this store does not have.
func (s *Store) given(path string) (*Dir, error) {
	known, ok := s.dbs.Load(filepath.Dir(filepath.Dir(path)))
	if !ok {
		return nil, nil
	}
	owner := known.(*dbDir)
	owner.mu.Lock()
	defer owner.mu.Unlock()
	d := owner.dirs[path]
	if d == nil {
		return nil, nil
	}
	_, err := s.fs.Stat(filepath.Join(path, manifestName))
	if errors.Is(err, fs.ErrNotExist) {
		delete(owner.dirs, path) // somebody has deleted it behind our back
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return d, nil
}

// Remove removes the content of an input, if there is one, in one step as far as any process or power loss can tell, and what is left after a
// Remove that has failed. Blocks that are open stay readable. It fails while the disk is away, which has the content when it is back.
func (s *Store) Remove(db string, in content.Input) error {
	path, err := s.contentPath(db, in)
	if err != nil {
		return err
	}
	defer s.alone(path)()
	if err := s.remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing input %s of version %s of db %s: %w", in.Hash, in.Name, db, err)
	}
	owner := s.of(path)
	owner.mu.Lock()
	defer owner.mu.Unlock()
	return errors.Join(s.removeIfEmpty(filepath.Dir(path)), s.removeIfEmpty(owner.path))
}

// alone waits until nobody else creates or removes the content of a path, and keeps others from it until the function that it returns is called.
func (s *Store) alone(path string) (end func()) {
	done := make(chan struct{})
	for {
		other, taken := s.changing.LoadOrStore(path, done)
		if !taken {
			return func() {
				s.changing.Delete(path)
				close(done)
			}
		}
		<-other.(chan struct{})
	}
}

// remove removes a content's directory, its manifest first: without it, and durably so, what is left is removed by the next
// start. Nobody else changes it meanwhile, see alone.
func (s *Store) remove(path string) error {
	owner := s.of(path)
	owner.mu.Lock()
	err := s.fs.Remove(filepath.Join(path, manifestName))
	if err == nil {
		delete(owner.dirs, path)
	}
	owner.mu.Unlock()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return s.sweepContent(path)
	case err != nil:
		return err
	}
	if err := s.fs.SyncDir(path); err != nil {
		return err
	}
	return s.fs.RemoveAll(path)
}

// removeIfEmpty removes the directory of a db or version in which nothing is left. Without data/, the disk is away, and nothing is known of it.
func (s *Store) removeIfEmpty(path string) error {
	entries, err := s.fs.ReadDir(path)
	if errors.Is(err, fs.ErrNotExist) {
		_, err = s.fs.Stat(s.data)
		return err
	}
	if err != nil || len(entries) > 0 {
		return err
	}
	return s.fs.Remove(path)
}
