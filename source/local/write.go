package local

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"sequins/internal/fsys"
)

// Replace writes a hidden file of a database's directory, and returns when it would survive a power loss. Everybody may read
// it, as nodes may run as another user.
func (s *Source) Replace(_ context.Context, db, name string, data []byte) error {
	dir := filepath.Join(s.root, db)
	f, err := os.CreateTemp(dir, "."+name+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Chmod(0o644)); err != nil {
		return errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	return fsys.Publish(fsys.OS, f, filepath.Join(dir, name))
}
