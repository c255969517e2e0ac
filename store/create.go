package store

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"sequins/blocks"
)

// Create returns the directory of a content of db that is to be loaded by plan m, of which DB is
// filled in. If there is one of the same content, it is returned with the blocks
// that it has and the time it was created; one of the same input with another division is removed first. The manifest is
// durable when Create returns.
//
// A directory without a manifest, in which there are files that no sequins made, is left as it is and makes an error: it may be
// somebody's data.
func (s *Store) Create(db string, m Manifest) (*Dir, error) {
	m.DB = db
	d, trash, err := s.create(m)
	if trash != "" {
		if terr := s.fs.RemoveAll(trash); err == nil {
			err = terr
		}
	}
	if err != nil {
		return nil, fmt.Errorf("creating version %s of db %s: %w", m.Version, db, err)
	}
	return d, nil
}

// create finds or makes the directory, and returns the trash that an older one became, if any.
func (s *Store) create(m Manifest) (d *Dir, trash string, err error) {
	in := m.Content().Input
	path, err := s.contentPath(m.DB, in)
	if err != nil {
		return nil, "", err
	}
	data, err := m.MarshalJSON()
	if err != nil {
		return nil, "", err
	}
	d, err = s.Dir(m.DB, in)
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.dirs[path]; now != nil {
		d, err = now, nil
	} else if d != nil {
		d, err = nil, fs.ErrNotExist // it was removed meanwhile
	}
	switch {
	case err == nil && d.manifest.Content() == m.Content():
		// Make it ready for a load: the process that wrote its manifest may have been killed before that was durable.
		return d, "", errors.Join(s.fs.MkdirAll(d.Temp()), s.fs.SyncDir(path))
	case errors.Is(err, fs.ErrNotExist):
		if err = s.sweepContent(path); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	case errors.Is(err, blocks.ErrCorrupt):
		err = nil
	}
	if err != nil {
		return nil, "", err
	}
	if err := s.beginState(m.DB, filepath.Dir(filepath.Dir(path))); err != nil {
		return nil, "", err
	}
	trash, err = s.discard(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, trash, err
	}
	if err = s.fs.MkdirAll(filepath.Join(path, tempDir)); err == nil {
		err = s.write(filepath.Join(path, manifestName), data)
	}
	if err != nil { // what is left of it would be made durable by nobody
		return nil, trash, errors.Join(err, s.fs.RemoveAll(path), s.removeIfEmpty(filepath.Dir(path)))
	}
	s.dirs[path] = &Dir{store: s, path: path, manifest: m.normal()}
	return s.dirs[path], trash, nil
}
