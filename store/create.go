package store

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"sequins/blocks"
)

// Create returns the directory of a content of db that is to be loaded by plan m, of which DB and Created
// are filled in. If there is one of the same content, it is returned with the blocks
// that it has and the time it was created; one of the same input with another division is removed first. The manifest is
// durable when Create returns.
//
// A directory without a manifest, in which there are files that no sequins made, is left as it is and makes an error: it may be
// somebody's data.
func (s *Store) Create(db string, m Manifest) (*Dir, error) {
	m.DB, m.Created = db, time.Now()
	d, err := s.create(m)
	if err != nil {
		return nil, fmt.Errorf("creating version %s of db %s: %w", m.Version, db, err)
	}
	return d, nil
}

// create finds or makes the directory.
func (s *Store) create(m Manifest) (*Dir, error) {
	in := m.Content().Input
	path, err := s.contentPath(m.DB, in)
	if err != nil {
		return nil, err
	}
	data, err := m.MarshalJSON()
	if err != nil {
		return nil, err
	}
	defer s.alone(path)()
	d, err := s.Dir(m.DB, in)
	switch {
	case err == nil && d.manifest.Content() == m.Content():
		// Make it ready for a load: the process that wrote its manifest may have been killed before that was durable.
		return d, errors.Join(s.fs.MkdirAll(filepath.Join(path, tempDir)), s.fs.SyncDir(path))
	case err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, blocks.ErrCorrupt):
		return nil, err
	}
	if err := s.beginState(m.DB, filepath.Dir(filepath.Dir(path))); err != nil {
		return nil, err
	}
	if err := s.remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	owner := s.of(path)
	owner.mu.Lock()
	defer owner.mu.Unlock()
	if err = s.fs.MkdirAll(filepath.Join(path, tempDir)); err == nil {
		err = s.write(filepath.Join(path, manifestName), data)
	}
	if err != nil { // what is left of it would be made durable by nobody
		return nil, errors.Join(err, s.fs.RemoveAll(path), s.removeIfEmpty(filepath.Dir(path)))
	}
	owner.dirs[path] = &Dir{store: s, db: owner, path: path, manifest: m.normal()}
	return owner.dirs[path], nil
}
