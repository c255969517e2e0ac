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

// ReadDir returns the names in a directory.
func (s *Source) ReadDir(ctx context.Context, dir string) (found source.Entries, err error) {
	p := path.Join(s.root, dir)
	if dir != "" && !source.ValidFile(dir) {
		return found, &fs.PathError{Op: "list", Path: s.display(p), Err: fs.ErrInvalid}
	}
	err = s.call(ctx, "list", p, func(c *lib.Client) error {
		found = source.Entries{}
		entries, err := c.ReadDir(p)
		for _, e := range entries {
			if e.IsDir() {
				found.Dirs = append(found.Dirs, e.Name())
			} else {
				found.Files = append(found.Files, e.Name())
			}
		}
		return err
	})
	slices.Sort(found.Dirs)
	slices.Sort(found.Files)
	return found, err
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
	if l.c.Table != "" || !source.MayBeTable(name) {
		return nil
	}
	entries, err := l.client.ReadDir(path.Join(l.dir, name))
	for _, e := range entries {
		if !e.IsDir() {
			l.c.AddTableEntry(name + "/" + e.Name())
		}
	}
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
