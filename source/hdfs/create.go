package hdfs

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path"
	"syscall"
	"time"

	lib "github.com/colinmarc/hdfs/v2"

	"sequins/internal/sleep"
	"sequins/source"
)

var _ source.Creator = (*Source)(nil)

// Create begins a file of a version under a hidden temporary name beside the final one. It has the default replication and
// block size of the file system.
//
// The session does not end with ctx: the library ends its goroutines only if it can finish the block that it writes.
func (s *Source) Create(ctx context.Context, db, version, name string, size int64) (source.FileWriter, error) {
	if err := errors.Join(ctx.Err(), source.CheckCreate(db, version, name)); err != nil {
		return nil, err
	}
	dir := path.Join(s.root, db, version)
	x, err := s.newSession(context.WithoutCancel(ctx), s.retryFor)
	if err != nil {
		return nil, &fs.PathError{Op: "create", Path: s.display(path.Join(dir, name)), Err: err}
	}
	c := &created{ctx: ctx, session: x, path: path.Join(dir, name), size: size}
	c.temporary = path.Join(dir, source.UnfinishedName(name, rand.Text()))
	err = x.ask(func() error { return x.client.MkdirAll(dir, 0o755) })
	if err == nil {
		err = x.ask(func() (err error) {
			c.f, err = x.client.Create(c.temporary)
			return err
		})
	}
	if err != nil {
		x.close()
		return nil, c.fail(err)
	}
	x.settle() // writing may take any time; the timeouts of the connections hold
	return c, nil
}

// created is a file that is being written, with a session of its own.
type created struct {
	ctx             context.Context
	session         *session // nil after Commit or Abort
	f               *lib.FileWriter
	path, temporary string
	size, written   int64
}

func (c *created) fail(err error) error {
	return &fs.PathError{Op: "write", Path: c.session.source.display(c.path), Err: err}
}

func (c *created) Write(p []byte) (n int, err error) {
	err = c.ctx.Err()
	for n < len(p) && err == nil {
		piece := p[n:min(len(p), n+packet)]
		clear(c.session.fruitless) // nothing is received; a file has many blocks
		err = c.session.do(func() error {
			_, err := c.f.Write(piece)
			return err
		})
		n += len(piece)
	}
	c.written += int64(n)
	if err != nil {
		return 0, c.fail(err)
	}
	return n, nil
}

// Commit closes the file, which waits for the datanodes, and renames it.
func (c *created) Commit() error {
	x := c.session
	err := errors.Join(c.ctx.Err(), source.CheckWritten(c.written, c.size))
	if err == nil {
		x.within(x.source.retryFor)
		err = x.do(func() error { return closeFile(x.ctx, c.f) })
	}
	if err == nil {
		err = x.ask(func() error { return x.client.Rename(c.temporary, c.path) })
	}
	if err != nil {
		return errors.Join(c.fail(err), c.Abort())
	}
	c.session = nil
	x.close()
	return nil
}

// closeFile closes a file when enough datanodes have reported to the namenode.
func closeFile(ctx context.Context, f *lib.FileWriter) error {
	err := f.Close()
	for lib.IsErrReplicating(err) {
		if err := sleep.For(ctx, closePause); err != nil {
			return err
		}
		err = f.Close()
	}
	return err
}

// abortTimeout limits the removal of an unfinished file.
const abortTimeout = 10 * time.Second

// Abort removes the temporary file, with a session of its own: the one that wrote may have ended.
func (c *created) Abort() error {
	if c.session == nil {
		return nil
	}
	x := c.session
	c.session = nil
	x.within(abortTimeout)
	_ = x.do(c.f.Close) // what is removed need not be whole
	x.close()
	ctx, cancel := context.WithTimeout(context.Background(), abortTimeout)
	defer cancel()
	err := x.source.removeAll(ctx, c.temporary)
	if err != nil {
		return &fs.PathError{Op: "remove", Path: x.source.display(c.temporary), Err: err}
	}
	return nil
}

// Remove removes files of a version, and its directory if that is empty then.
func (s *Source) Remove(ctx context.Context, db, version string, names ...string) error {
	dir := path.Join(s.root, db, version)
	var paths []string
	for _, name := range names {
		if !source.ValidFile(name) {
			return &fs.PathError{Op: "remove", Path: s.display(path.Join(dir, name)), Err: fs.ErrInvalid}
		}
		paths = append(paths, path.Join(dir, name))
	}
	err := s.removeAll(ctx, paths...)
	if err == nil {
		err = s.removeAll(ctx, dir)
		if errors.Is(err, syscall.ENOTEMPTY) {
			return nil
		}
	}
	if err != nil {
		return &fs.PathError{Op: "remove", Path: s.display(dir), Err: err}
	}
	return nil
}

// removeAll removes files and empty directories, if they are there.
func (s *Source) removeAll(ctx context.Context, paths ...string) error {
	x, err := s.newSession(ctx, s.retryFor)
	if err != nil {
		return err
	}
	defer x.close()
	for _, p := range paths {
		err := x.ask(func() error {
			err := x.client.Remove(p)
			if os.IsNotExist(err) {
				return nil
			}
			return err
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		x.within(s.retryFor)
	}
	return nil
}
