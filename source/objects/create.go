package objects

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"time"

	"sequins/internal/names"
	"sequins/source"
)

const (
	// uploadPart is the least size of a part of an upload, in bytes. A smaller object is sent in one request.
	uploadPart = 8 << 20
	// maxParts is how many parts an upload has at most; S3 allows 10,000, and Azure 50,000.
	maxParts = 9000
	// partUnit divides the size of a part, as GCS requires of 256 KiB. Parts are of one size, as some servers require.
	partUnit = 1 << 20
	// abortTimeout limits the removal of the parts of an upload.
	abortTimeout = 10 * time.Second
)

// Create begins an object of a version. It is sent in parts, which no listing shows until Commit makes an object of
// them. Parts of a process that was killed stay until the store removes them, by a rule of the bucket or after some days.
func (s *Source) Create(ctx context.Context, db, version, name string, size int64) (source.FileWriter, error) {
	if err := errors.Join(ctx.Err(), source.CheckCreate(db, version, name)); err != nil {
		return nil, err
	}
	part := partLength(size)
	return &created{
		source: s, ctx: ctx, key: path.Join(s.root, db, version, name), size: size,
		part: make([]byte, 0, min(part, size)), most: int(part),
	}, nil
}

// partLength returns the size of the parts of an object.
func partLength(size int64) int64 {
	least := max(uploadPart, (size+maxParts-1)/maxParts)
	return (least + partUnit - 1) / partUnit * partUnit
}

// created is an object that is being written.
type created struct {
	source        *Source
	ctx           context.Context
	key           string
	size, written int64
	part          []byte // not sent yet
	most          int    // length of a full part
	upload        Upload // nil before the first part is sent
	done          bool
}

func (c *created) fail(err error) error { return c.source.fail(c.ctx, "write", c.key, err) }

// Write sends each part when it is full, unless it is the last one.
func (c *created) Write(p []byte) (n int, err error) {
	for n < len(p) {
		if len(c.part) == c.most {
			if err := c.send(); err != nil {
				return n, c.fail(err)
			}
		}
		took := min(len(p)-n, c.most-len(c.part))
		c.part = append(c.part, p[n:n+took]...)
		n += took
		c.written += int64(took)
	}
	return n, nil
}

// send sends the gathered part.
func (c *created) send() (err error) {
	if c.upload == nil {
		if c.upload, err = c.source.store.Upload(c.ctx, c.key, c.size); err != nil {
			return err
		}
	}
	err = c.upload.Part(c.ctx, c.part)
	c.part = make([]byte, 0, min(int64(c.most), max(0, c.size-c.written))) // net/http may still read the former one after an answer
	return err
}

// Commit makes an object of the parts.
func (c *created) Commit() error {
	err := source.CheckWritten(c.written, c.size)
	if err == nil {
		err = c.finish()
	}
	if err != nil {
		return errors.Join(c.fail(err), c.Abort())
	}
	c.done, c.part = true, nil
	return nil
}

func (c *created) finish() error {
	if c.upload == nil {
		return c.source.store.Put(c.ctx, c.key, c.part, nil)
	}
	return c.upload.Complete(c.ctx, c.part)
}

// Abort removes the parts.
func (c *created) Abort() error {
	if c.done || c.upload == nil {
		return nil
	}
	c.done, c.part = true, nil
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), abortTimeout)
	defer cancel()
	if err := c.upload.Abort(ctx); err != nil {
		return c.source.fail(ctx, "abort the upload of", c.key, err)
	}
	return nil
}

// Remove removes objects of a version. In a store with directories, that of the version is removed if nothing is left in it.
func (s *Source) Remove(ctx context.Context, db, version string, files ...string) error {
	dir := path.Join(s.root, db, version)
	if !names.ValidDatabase(db) || !names.Valid(version) {
		return &fs.PathError{Op: "remove", Path: s.store.URL(dir), Err: fs.ErrInvalid}
	}
	keys := []string{}
	for _, name := range files {
		if !source.ValidFile(name) {
			return &fs.PathError{Op: "remove", Path: s.store.URL(path.Join(dir, name)), Err: fs.ErrInvalid}
		}
		keys = append(keys, path.Join(dir, name))
	}
	for _, key := range keys {
		if err := s.store.Delete(ctx, key); err != nil {
			return s.fail(ctx, "remove", key, err)
		}
	}
	return s.removeDir(ctx, dir)
}

// removeDir removes a directory if nothing is in it.
func (s *Source) removeDir(ctx context.Context, dir string) error {
	d, ok := s.store.(Directories)
	if !ok {
		return nil
	}
	page, err := s.store.List(ctx, dir+"/", false, "")
	if err == nil && (page.More || len(page.Objects)+len(page.Dirs) > 0) {
		return nil
	}
	exists := false
	if err == nil {
		exists, err = d.IsDir(ctx, dir)
	}
	if exists {
		err = s.store.Delete(ctx, dir)
	}
	if err != nil {
		return s.fail(ctx, "remove", dir, err)
	}
	return nil
}
