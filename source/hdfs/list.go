package hdfs

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"slices"

	lib "github.com/colinmarc/hdfs/v2"

	"sequins/source"
)

// retry retries attempt until it succeeds or fails permanently. The error names
// the path.
func (s *Source) retry(ctx context.Context, op, p string, attempt func() error) error {
	a := attempts{limit: s.retryFor}
	err := ctx.Err()
	for err == nil {
		if err = attempt(); err == nil {
			return nil
		}
		err = a.fail(ctx, err)
	}
	return &fs.PathError{Op: op, Path: s.display(p), Err: err}
}

// call calls f with a client, and retries with a new client after a failure.
func (s *Source) call(ctx context.Context, op, p string, f func(*lib.Client) error) error {
	return s.retry(ctx, op, p, func() error {
		x, err := s.newSession(ctx)
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

// Contents returns the contents of a version's directory.
func (s *Source) Contents(ctx context.Context, db, version string) (c source.Contents, err error) {
	dir, err := source.VersionPath(db, version)
	dir = path.Join(s.root, dir)
	if err != nil {
		return c, &fs.PathError{Op: "list", Path: s.display(dir), Err: err}
	}
	err = s.call(ctx, "list", dir, func(client *lib.Client) (err error) {
		if c, err = source.Walk(ctx, versionTree{client, dir}); source.Lasting(err) {
			err = final{err}
		}
		return err
	})
	return c, err
}

// versionTree is a version's directory. Each directory below it is a call.
type versionTree struct {
	client *lib.Client
	dir    string
}

func (t versionTree) ReadDir(name string) ([]fs.DirEntry, error) {
	infos, err := t.client.ReadDir(path.Join(t.dir, name))
	entries := make([]fs.DirEntry, len(infos))
	for i, info := range infos {
		entries[i] = fs.FileInfoToDirEntry(info)
	}
	return entries, err
}

func (t versionTree) Describe(name string, entry fs.DirEntry) (m source.Marker, err error) {
	var info fs.FileInfo
	if entry == nil {
		info, err = t.client.Stat(path.Join(t.dir, name))
	} else {
		info, err = entry.Info()
	}
	if err != nil {
		return m, err
	}
	if !info.IsDir() && !source.Hidden(path.Base(name)) && status(info).GetFileType() != isFile {
		return m, fmt.Errorf("%s: %w", name, errSymlink)
	}
	return source.Marker{File: describe(name, info), Dir: info.IsDir()}, nil
}

// isFile is HdfsFileStatusProto_IS_FILE, which the library does not export.
const isFile = 2

// status returns a namenode's full status of a file.
func status(info fs.FileInfo) *lib.FileStatus {
	s, _ := info.Sys().(*lib.FileStatus)
	return s // its getters accept nil
}
