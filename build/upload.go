package build

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"sequins/blocks"
	"sequins/finished"
	"sequins/internal/sleep"
	"sequins/source"
	"sequins/store"
)

const (
	atOnce   = 4 // uploads
	attempts = 3 // of an upload
	// copyBuffer is how many bytes of a block are read, hashed and sent at a time.
	copyBuffer = 256 << 10
	// Pauses between attempts.
	firstPause, maxPause = 500 * time.Millisecond, 5 * time.Second
)

// An uploader writes the files of one finished version.
type uploader struct {
	Place
	to  source.Creator
	ctx context.Context
	dir *store.Dir // of the blocks

	mu          sync.Mutex
	names       []string         // of files that may be in the target
	blocks      []finished.Block // by partition
	compression string
	blockSize   int
}

// upload uploads blocks of the store and removes them there.
func (u *uploader) upload(partitions []int) error {
	g, ctx := errgroup.WithContext(u.ctx)
	g.SetLimit(atOnce)
	for _, p := range partitions {
		g.Go(func() error { return u.block(ctx, p) })
	}
	return g.Wait()
}

func (u *uploader) block(ctx context.Context, p int) error {
	path := u.dir.BlockPath(p)
	r, err := blocks.Open(path)
	if err != nil {
		return err
	}
	props := r.Properties()
	b := finished.Block{Partition: p, Name: finished.BlockName(p), Size: r.Size(), ContentHash: props.ContentHash, Records: props.Records}
	if err := r.Close(); err != nil {
		return err
	}
	u.note(b.Name)
	sum, err := u.file(ctx, b.Name, b.Size, func() (io.ReadCloser, error) { return os.Open(path) })
	if err != nil {
		return err
	}
	b.SHA256 = fmt.Sprintf("%x", sum)
	u.mu.Lock()
	u.blocks[p], u.compression, u.blockSize = b, props.Compression, props.BlockSize
	u.mu.Unlock()
	return os.Remove(path) // room for the next ones
}

// note remembers a file that may be in the target.
func (u *uploader) note(name string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.names = append(u.names, name)
}

// file writes a file of the target, and returns the SHA-256 of its bytes. A failed attempt is repeated.
func (u *uploader) file(ctx context.Context, name string, size int64, open func() (io.ReadCloser, error)) (sum []byte, err error) {
	for failed := 1; ; failed++ {
		if sum, err = u.once(ctx, name, size, open); err == nil || failed == attempts || ctx.Err() != nil {
			return sum, err
		}
		if serr := sleep.For(ctx, sleep.Backoff(failed, firstPause, maxPause)); serr != nil {
			return nil, err
		}
	}
}

func (u *uploader) once(ctx context.Context, name string, size int64, open func() (io.ReadCloser, error)) (sum []byte, err error) {
	in, err := open()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	out, err := u.to.Create(ctx, u.DB, u.Version, name, size)
	if err != nil {
		return nil, err
	}
	hash := sha256.New()
	to := struct{ io.Writer }{io.MultiWriter(out, hash)} // not an io.ReaderFrom, which would not use the buffer
	if _, err := io.CopyBuffer(to, struct{ io.Reader }{in}, make([]byte, copyBuffer)); err != nil {
		return nil, errors.Join(err, out.Abort())
	}
	return hash.Sum(nil), out.Commit()
}

// finish writes the manifest and the marker.
func (u *uploader) finish(m *finished.Manifest) error {
	data, err := m.Encode()
	if err != nil {
		return err
	}
	c, err := u.Source.Contents(u.ctx, u.DB, u.Version)
	if err != nil {
		return err
	}
	if hasManifest(c) {
		return fmt.Errorf("%s: %w: another build has finished it meanwhile", u, ErrOccupied)
	}
	if err := m.Match(c.Files); err != nil { // another build into the same target
		return fmt.Errorf("%s/%w: does another build write there?", u, err)
	}
	for _, file := range []struct {
		name string
		data []byte
	}{{source.BlocksFile, data}, {source.SuccessFile, nil}} {
		u.note(file.name)
		open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(file.data)), nil }
		if _, err := u.file(u.ctx, file.name, int64(len(file.data)), open); err != nil {
			return err
		}
	}
	return nil
}

func hasManifest(c source.Contents) bool {
	return slices.ContainsFunc(c.Hidden, func(m source.Marker) bool { return m.Name == source.BlocksFile })
}

// undo removes what was written, in the reverse order: the marker and the manifest first. It removes nothing if another
// build has finished the version.
func (u *uploader) undo() error {
	u.mu.Lock()
	names := slices.Clone(u.names)
	u.mu.Unlock()
	if len(names) == 0 {
		return nil
	}
	slices.Reverse(names)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(u.ctx), undoTimeout)
	defer cancel()
	if c, err := u.Source.Contents(ctx, u.DB, u.Version); err == nil && hasManifest(c) && !slices.Contains(names, source.BlocksFile) {
		return nil
	}
	if err := u.to.Remove(ctx, u.DB, u.Version, names...); err != nil {
		return fmt.Errorf("removing what was written to %s, which nodes ignore: %w", u, err)
	}
	return nil
}
