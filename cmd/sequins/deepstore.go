package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"sequins/internal/human"
	"sequins/store"
)

// existing returns the directory of the store, or the deepest one above it that exists.
func (d *deep) existing() (dir string, isStore bool, err error) {
	dir = filepath.Clean(d.c.LocalStore)
	for at := dir; ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		switch {
		case err == nil && !info.IsDir():
			return "", false, fmt.Errorf("%s is not a directory", at)
		case err == nil:
			return at, at == dir, nil
		case !errors.Is(err, fs.ErrNotExist) || at == filepath.Dir(at):
			return "", false, err
		}
	}
}

// checkStore writes, links, renames and removes a file in the store, or where it would be created: opening it would create it, with the
// user of this command as its owner. What it makes has a name that the store does not use.
func (d *deep) checkStore(context.Context) finding {
	dir, isStore, err := d.existing()
	if err != nil {
		return failedBy(err)
	}
	if err := tryDirectory(dir); err != nil {
		return failedBy(err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return failedBy(err)
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && os.Getuid() == 0 && stat.Uid != 0 {
		return warned("%s belongs to user %d and was tried as root: run this as the user of the service", dir, stat.Uid)
	}
	if !isStore {
		return found("%s can be created in %s", d.c.LocalStore, dir)
	}
	if err := store.RefuseOld(dir); err != nil {
		return failedBy(err)
	}
	if pid := store.Owner(dir); pid != 0 {
		return found("%s can be written, and is in use by process %d", dir, pid)
	}
	return found("%s can be written; files can be linked and renamed", dir)
}

// tryDirectory does with a file what the store does with blocks.
func tryDirectory(dir string) (err error) {
	temp, err := os.MkdirTemp(dir, ".sequins-check-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	file, linked := filepath.Join(temp, "a"), filepath.Join(temp, "b")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		return err
	}
	if err := os.Link(file, linked); err != nil {
		return fmt.Errorf("hard links do not work, with which unchanged partitions are kept: %w", err)
	}
	return os.Rename(linked, filepath.Join(temp, "c"))
}

// checkDisk looks at the file system of the store. Whether a load fits on it, the load finds out before it begins.
func (d *deep) checkDisk(context.Context) finding {
	dir, _, err := d.existing()
	if err != nil {
		return failedBy(err)
	}
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return failedBy(fmt.Errorf("%s: %w", dir, err))
	}
	if why := unfit(&s); why != "" {
		return warned("%s is on %s", dir, why)
	}
	bytes := func(blocks uint64) string { return human.Size(int64(min(float64(blocks)*float64(s.Bsize), 1<<62))) }
	return found("%s has %s, of which %s are free", dir, bytes(s.Blocks), bytes(s.Bavail))
}
