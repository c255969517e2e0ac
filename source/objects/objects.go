package objects

import (
	"context"
	"io/fs"
	"path"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/semaphore"

	"sequins/source"
)

// Source is a prefix of a bucket.
type Source struct {
	store   Store
	retries int    // of a broken stream
	root    string // prefix without surrounding slashes

	memory  int64               // bounds the read-ahead of all readers, in addition to one part per reader
	budget  *semaphore.Weighted // limits memory
	readers atomic.Int64        // open readers
	buffers [classes]sync.Pool  // of *[]byte, by size of part

	mu    sync.Mutex
	links map[string]string // version's directory → directory to read, from the last Contents
}

// New returns a source in a prefix of a store.
func New(store Store, o Options, root string) *Source {
	const memory = 4 * maxWindow // four readers at full speed
	return &Source{
		store: store, retries: o.Retries(), root: strings.Trim(path.Clean("/"+root), "/"),
		memory: memory, budget: semaphore.NewWeighted(memory), links: map[string]string{},
	}
}

// Path returns the location of a version for messages: of a link, the link itself.
func (s *Source) Path(db, version string) string {
	return s.store.URL(path.Join(s.root, db, version))
}

// key returns the key of a file for Open: of a linked version, that of its target.
func (s *Source) key(ctx context.Context, db, version string, file source.File, o source.ReadOptions) (string, error) {
	key, err := source.FilePath(db, version, file.Name, o)
	key = path.Join(s.root, key)
	if err != nil {
		return "", s.fail(ctx, "open", key, err)
	}
	if version == "" {
		return key, nil
	}
	dir := path.Join(s.root, db, version)
	s.mu.Lock()
	target, known := s.links[dir]
	s.mu.Unlock()
	if !known {
		target, err = s.readLink(ctx, dir)
	}
	return target + "/" + file.Name, err
}

// Replace writes a hidden object of a database.
func (s *Source) Replace(ctx context.Context, db, name string, data []byte) error {
	key := path.Join(s.root, db, name)
	if err := s.store.Put(ctx, key, data); err != nil {
		return s.fail(ctx, "write", key, err)
	}
	return nil
}

func (s *Source) fail(ctx context.Context, op, key string, err error) error {
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return &fs.PathError{Op: op, Path: s.store.URL(key), Err: err}
}
