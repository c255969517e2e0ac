package hdfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"time"

	lib "github.com/colinmarc/hdfs/v2"

	"sequins/internal/names"
	"sequins/source"
)

// retry retries attempt until it succeeds or fails permanently. The error names
// the path.
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

// call calls f with a client, and retries with a new client after a failure.
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

// Databases returns the directories in the root with valid names.
func (s *Source) Databases(ctx context.Context) ([]string, error) {
	return s.directories(ctx, s.root, names.ValidDatabase)
}

// Versions returns the directories of a database with valid names.
func (s *Source) Versions(ctx context.Context, db string) ([]string, error) {
	dir := path.Join(s.root, db)
	if !names.ValidDatabase(db) {
		return nil, &fs.PathError{Op: "list", Path: s.display(dir), Err: fs.ErrNotExist}
	}
	return s.directories(ctx, dir, names.Valid)
}

// Invalid returns the directories that Databases or Versions omits.
func (s *Source) Invalid(ctx context.Context, db string) ([]string, error) {
	valid := names.Valid
	if db == "" {
		valid = names.ValidDatabase
	}
	return s.directories(ctx, path.Join(s.root, db), func(name string) bool {
		return !valid(name) && !source.Hidden(name)
	})
}

// directories returns the names of the directories in dir for which want is true.
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

// Contents returns the contents of a version's directory. It fails if it cannot
// stat a file, since the number of files is the number of partitions.
func (s *Source) Contents(ctx context.Context, db, version string) (c source.Contents, err error) {
	dir, err := s.versionDir("list", db, version)
	if err != nil {
		return c, err
	}
	err = s.call(ctx, "list", dir, func(client *lib.Client) (err error) {
		l := lister{ctx: ctx, client: client, dir: dir}
		if err = l.list(""); err == nil {
			c = l.c
		}
		return err
	})
	c.Sort()
	return c, err
}

// lister lists a version's directory and the directories of a partitioned table
// below it, each with a call.
type lister struct {
	ctx    context.Context
	client *lib.Client
	dir    string
	dirs   source.Dirs
	c      source.Contents
}

// list lists a directory below the version's. sub is its name with a slash at the
// end, or empty.
func (l *lister) list(sub string) error {
	if err := l.ctx.Err(); err != nil {
		return err
	}
	entries, err := l.client.ReadDir(path.Join(l.dir, sub))
	if err != nil {
		return err
	}
	for _, info := range entries {
		name := sub + info.Name()
		switch {
		case source.Hidden(info.Name()):
			l.c.AddHidden(describe(name, info), info.IsDir())
		case info.IsDir():
			err = l.addDir(name)
		default:
			err = addFile(&l.c, name, info)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// addDir adds a directory: its files if it is one of a partitioned table, or the
// data of a MapFile. A directory that has just been removed has no files.
func (l *lister) addDir(name string) error {
	if entered, err := l.dirs.Enter(name); err != nil {
		return final{err}
	} else if entered {
		if err = l.list(name + "/"); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return err
	}
	data, err := l.client.Stat(path.Join(l.dir, name, "data"))
	if err == nil && !data.IsDir() {
		return addFile(&l.c, name+"/data", data)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	l.c.Dirs = append(l.c.Dirs, name)
	if name != source.MetadataDir {
		return nil
	}
	entries, err := l.client.ReadDir(path.Join(l.dir, name))
	l.c.Iceberg = slices.ContainsFunc(entries, func(e fs.FileInfo) bool { return source.IsIceberg(e.Name()) })
	return err
}

func addFile(c *source.Contents, name string, info fs.FileInfo) error {
	if status(info).GetFileType() != isFile {
		return final{fmt.Errorf("%s: %w", name, errSymlink)}
	}
	c.Files = append(c.Files, describe(name, info))
	return nil
}

// isFile is HdfsFileStatusProto_IS_FILE, which the library does not export.
const isFile = 2

// status returns a namenode's full status of a file.
func status(info fs.FileInfo) *lib.FileStatus {
	s, _ := info.Sys().(*lib.FileStatus)
	return s // its getters accept nil
}

func (s *Source) versionDir(op, db, version string) (string, error) {
	dir := path.Join(s.root, db, version)
	if !names.ValidDatabase(db) || !names.Valid(version) {
		return "", &fs.PathError{Op: op, Path: s.display(dir), Err: fs.ErrNotExist}
	}
	return dir, nil
}
