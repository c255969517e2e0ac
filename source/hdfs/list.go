package hdfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	lib "github.com/colinmarc/hdfs/v2"

	"sequins/source"
)

// retry makes attempts until one succeeds or there is no point in more. The
// error names the path.
func (s *Source) retry(ctx context.Context, op, p string, attempt func(limit time.Duration) error) error {
	a := attempts{limit: s.retryFor}
	err := ctx.Err()
	for err == nil {
		if err = attempt(a.begin()); err == nil {
			return nil
		}
		err = a.fail(ctx, err)
	}
	return &fs.PathError{Op: op, Path: s.display(p), Err: err}
}

// call runs f with a client, again with another where it fails.
func (s *Source) call(ctx context.Context, op, p string, f func(*lib.Client) error) error {
	return s.retry(ctx, op, p, func(limit time.Duration) error {
		x, err := s.newSession(ctx, limit)
		if err != nil {
			return err
		}
		defer x.close()
		return x.ask(func() error { return f(x.client) })
	})
}

// Databases returns the directories in the root whose names are valid.
func (s *Source) Databases(ctx context.Context) ([]string, error) {
	return s.directories(ctx, s.root, source.ValidDatabase)
}

// Versions returns the directories of a database whose names are valid.
func (s *Source) Versions(ctx context.Context, db string) ([]string, error) {
	dir := path.Join(s.root, db)
	if !source.ValidDatabase(db) {
		return nil, &fs.PathError{Op: "list", Path: s.display(dir), Err: fs.ErrNotExist}
	}
	return s.directories(ctx, dir, source.ValidName)
}

// Invalid returns the directories that Databases or Versions leaves out.
func (s *Source) Invalid(ctx context.Context, db string) ([]string, error) {
	valid := source.ValidName
	if db == "" {
		valid = source.ValidDatabase
	}
	return s.directories(ctx, path.Join(s.root, db), func(name string) bool {
		return !valid(name) && !source.Hidden(name)
	})
}

// directories returns the names of the directories in dir that are wanted.
func (s *Source) directories(ctx context.Context, dir string, want func(name string) bool) (names []string, err error) {
	err = s.call(ctx, "list", dir, func(c *lib.Client) error {
		names = nil
		entries, err := c.ReadDir(dir)
		for _, e := range entries {
			if e.IsDir() && want(e.Name()) {
				names = append(names, e.Name())
			}
		}
		return err
	})
	slices.Sort(names)
	return names, err
}

// Files returns a version's files. One that cannot be looked at is an error,
// not an absence: the number of files is the number of partitions.
func (s *Source) Files(ctx context.Context, db, version string) (files []source.File, err error) {
	dir, err := s.versionDir("list", db, version)
	if err != nil {
		return nil, err
	}
	err = s.call(ctx, "list", dir, func(c *lib.Client) (err error) {
		files, err = dataFiles(c, dir)
		return err
	})
	slices.SortFunc(files, func(a, b source.File) int { return strings.Compare(a.Name, b.Name) })
	return files, err
}

func dataFiles(c *lib.Client, dir string) ([]source.File, error) {
	entries, err := c.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var files []source.File
	for _, info := range entries {
		name := info.Name()
		if source.Hidden(name) {
			continue
		}
		if info.IsDir() { // which counts if it is a MapFile
			name += "/data"
			info, err = c.Stat(path.Join(dir, name))
			if errors.Is(err, fs.ErrNotExist) || err == nil && info.IsDir() {
				continue
			}
			if err != nil {
				return nil, err
			}
		}
		if status(info).GetFileType() != isFile {
			return nil, final{fmt.Errorf("%s: %w", name, errSymlink)}
		}
		files = append(files, describe(name, info))
	}
	return files, nil
}

// isFile is HdfsFileStatusProto_IS_FILE, which the library keeps to itself.
const isFile = 2

// status returns all that a namenode says about a file.
func status(info fs.FileInfo) *lib.FileStatus {
	s, _ := info.Sys().(*lib.FileStatus)
	return s // the getters take nil
}

func (s *Source) versionDir(op, db, version string) (string, error) {
	dir := path.Join(s.root, db, version)
	if !source.ValidDatabase(db) || !source.ValidName(version) {
		return "", &fs.PathError{Op: op, Path: s.display(dir), Err: fs.ErrNotExist}
	}
	return dir, nil
}
