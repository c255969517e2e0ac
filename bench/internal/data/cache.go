package data

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Cache is a directory of files that took time to build. The least recently used are removed first.
type Cache struct {
	dir    string
	limit  int64           // bytes
	in     map[string]bool // names that this process uses
	report func(format string, args ...any)
}

// NewCache keeps up to limit bytes in dir, which it creates; it calls report for each file set that it builds or
// removes.
func NewCache(dir string, limit int64, report func(format string, args ...any)) (*Cache, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	return &Cache{dir: dir, limit: limit, in: map[string]bool{}, report: report}, nil
}

// Dir is where the files are.
func (c *Cache) Dir() string { return c.dir }

// Get returns the path of a file or directory, which build makes at the path that it is given if it is
// not there yet. size is about how long it will be.
func (c *Cache) Get(name string, size int64, build func(path string) error) (string, error) {
	path := filepath.Join(c.dir, name)
	c.in[name] = true
	now := time.Now()
	err := os.Chtimes(path, now, now)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return path, err
	}
	if err := c.makeRoom(size); err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	temp := path + ".tmp"
	if err := os.RemoveAll(temp); err != nil {
		return "", err
	}
	if err := build(temp); err != nil {
		return "", errors.Join(fmt.Errorf("%s: %w", name, err), os.RemoveAll(temp))
	}
	c.report("built %s in %v", name, time.Since(now).Round(time.Millisecond))
	return path, os.Rename(temp, path)
}

// Fresh is Get for data that must not be from an earlier run: it always builds.
func (c *Cache) Fresh(name string, size int64, build func(path string) error) (string, error) {
	if err := os.RemoveAll(filepath.Join(c.dir, name)); err != nil {
		return "", err
	}
	return c.Get(name, size, build)
}

type entry struct {
	name string
	size int64
	used time.Time
}

// makeRoom removes the least recently used entries until size more bytes fit below the limit and on the
// disk, a tenth of which stays free.
func (c *Cache) makeRoom(size int64) error {
	entries, sum, err := c.entries()
	if err != nil {
		return err
	}
	for {
		free, err := c.free()
		if err != nil {
			return err
		}
		if sum+size <= c.limit && size <= free {
			return nil
		}
		i := slices.IndexFunc(entries, func(e entry) bool { return !c.in[e.name] })
		if i < 0 {
			return fmt.Errorf("%d MB more: %s holds %d MB, of %d MB at most, and the disk has room for %d MB", size>>20, c.dir, sum>>20, c.limit>>20, free>>20)
		}
		c.report("removing %s", entries[i].name)
		if err := os.RemoveAll(filepath.Join(c.dir, entries[i].name)); err != nil {
			return err
		}
		sum -= entries[i].size
		entries = slices.Delete(entries, i, i+1)
	}
}

func (c *Cache) free() (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(c.dir, &st); err != nil {
		return 0, err
	}
	return st.Bsize * (int64(st.Bavail) - int64(st.Blocks/10)), nil
}

// entries lists the cache, the least recently used entry first.
func (c *Cache) entries() ([]entry, int64, error) {
	names, err := os.ReadDir(c.dir)
	if err != nil {
		return nil, 0, err
	}
	var all []entry
	var sum int64
	for _, n := range names {
		info, err := n.Info()
		if err != nil {
			return nil, 0, err
		}
		size, err := DiskUse(filepath.Join(c.dir, n.Name()))
		if err != nil {
			return nil, 0, err
		}
		if strings.HasSuffix(n.Name(), ".tmp") {
			info = nil // left by a run that was interrupted
		}
		e := entry{name: n.Name(), size: size}
		if info != nil {
			e.used = info.ModTime()
		}
		all = append(all, e)
		sum += size
	}
	slices.SortFunc(all, func(a, b entry) int { return a.used.Compare(b.used) })
	return all, sum, nil
}

// DiskUse is the length of all files at path, itself or below it.
func DiskUse(path string) (int64, error) {
	var sum int64
	err := filepath.WalkDir(path, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			sum += info.Size()
		}
		return err
	})
	return sum, err
}

// Files lists the regular files at path, itself or below it.
func Files(path string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			files = append(files, p)
		}
		return err
	})
	return files, err
}
