// Package once makes what test processes that run at the same time have in common: one of them makes it, under a lock.
package once

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Dir returns a directory with the name of path and the Sum of files. If it is not there, or was not completed, make fills it.
func Dir(path string, make func(dir string) error, files ...string) (dir string, err error) {
	sum, err := Sum(files...)
	if err != nil {
		return "", err
	}
	dir = path + "-" + sum
	stamp := filepath.Join(dir, "complete")
	unlock, err := Lock(dir + ".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Stat(stamp); err == nil {
		return dir, nil
	}
	if err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o755)); err != nil {
		return "", err
	}
	if err := make(dir); err != nil {
		return "", err
	}
	return dir, os.WriteFile(stamp, nil, 0o644)
}

// Sum returns a hash of the paths and contents of files, and of all files in those that are directories. A path that does not exist has none.
func Sum(paths ...string) (string, error) {
	h := sha256.New()
	for _, path := range paths {
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		err := filepath.WalkDir(path, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			b, err := os.ReadFile(path)
			fmt.Fprintf(h, "%s %d\n%s", path, len(b), b) // never fails
			return err
		})
		if err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:6]), nil
}
