package store

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"sequins/blocks"
	"sequins/internal/fsys"
)

// Create returns the directory of a content of db that is to be loaded by plan m, of which DB and
// FormatVersion are filled in. If there is one of the same content, it is returned with the blocks
// that it has and the time it was created; one of the same input with another division is removed first. The manifest is
// durable when Create returns.
//
// A directory that is not a content, and in which there are files that no sequins made, is left as
// it is and makes an error: it may be somebody's data.
func (s *Store) Create(db string, m Manifest) (*Dir, error) {
	m.FormatVersion, m.DB = manifestVersion, db
	in := m.Content().Input
	path, err := s.contentPath(db, in)
	if err != nil {
		return nil, err
	}
	if err := m.validate(); err != nil {
		return nil, fmt.Errorf("manifest of version %s of db %s: %w", in.Name, db, err)
	}
	data, err := encodeManifest(m)
	if err != nil {
		return nil, fmt.Errorf("manifest of version %s of db %s: %w", in.Name, db, err)
	}
	if m, err = decodeManifest(data, filepath.Join(path, manifestName)); err != nil { // so that it is the same after a restart
		return nil, err
	}
	d, trash, err := s.create(path, m, data)
	if terr := s.empty(trash); err == nil {
		err = terr
	}
	if err != nil {
		return nil, fmt.Errorf("creating version %s of db %s: %w", in.Name, db, err)
	}
	return d, nil
}

// create finds or makes the directory, and returns the trash that an older one became, if any.
func (s *Store) create(path string, m Manifest, data []byte) (d *Dir, trash string, err error) {
	d, err = s.Dir(m.DB, m.Content().Input)
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.dirs[path]; now != nil {
		d, err = now, nil
	} else if d != nil {
		d, err = nil, fs.ErrNotExist // it was removed meanwhile
	}
	switch {
	case err == nil && d.manifest.Content() == m.Content():
		return d, "", s.revive(d)
	case errors.Is(err, fs.ErrNotExist):
		err = s.refuseStranger(path)
	case errors.Is(err, blocks.ErrCorrupt), errors.Is(err, ErrManifestVersion):
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
	if err = s.make(path, data); err != nil {
		s.unmake(path)
		return nil, trash, err
	}
	s.dirs[path] = &Dir{store: s, path: path, manifest: m}
	return s.dirs[path], trash, nil
}

// revive makes a directory that is there ready for a load: its manifest durable, as the process
// that wrote it may have been killed before it was, and its directory for temporary files there.
func (s *Store) revive(d *Dir) error {
	if err := s.fs.MkdirAll(d.Temp()); err != nil {
		return err
	}
	return s.fs.SyncDir(d.path)
}

// make makes the directory of a content with its manifest, durably.
func (s *Store) make(path string, manifest []byte) error {
	if err := s.fs.MkdirAll(filepath.Join(path, tempDir)); err != nil {
		return err
	}
	final := filepath.Join(path, manifestName)
	f, err := s.fs.Create(s.tempName(final))
	if err != nil {
		return err
	}
	if _, err := f.Write(manifest); err != nil {
		return errors.Join(err, f.Close(), s.fs.Remove(f.Name()))
	}
	return fsys.Publish(s.fs, f, final)
}

// unmake removes what make has left when it failed, as far as it can: it is only for tidiness, as
// a directory without a manifest is no content, and is removed at the next start.
func (s *Store) unmake(path string) {
	for _, dir := range []string{filepath.Join(path, tempDir), path, filepath.Dir(path)} {
		if err := s.fs.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return
		}
	}
}
