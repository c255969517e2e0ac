package objects

import (
	"context"
	"io/fs"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"sequins/source"
)

// DefaultTimeout is how long a server may be silent, if nothing else is configured.
const DefaultTimeout = 20 * time.Second

// DefaultMemory is the default of Options.Memory: four readers at full speed.
const DefaultMemory = 4 * maxWindow

// Options configures a Source.
type Options struct {
	// Root is the prefix of the source in the bucket.
	Root string

	// MaxRetries is the number of consecutive retries of a broken stream. Negative means 0.
	MaxRetries int

	// Memory bounds the read-ahead of all readers, in bytes, in addition to one part of at most 4 MiB per reader. 0 means
	// DefaultMemory.
	Memory int64
}

// Source is a prefix of a bucket.
type Source struct {
	store Store
	root  string // prefix without surrounding slashes

	maxRetries int
	memory     int64               // Options.Memory
	budget     *semaphore.Weighted // limits memory
	readers    atomic.Int64        // open readers
	buffers    [classes]sync.Pool  // of *[]byte, by size of part

	mu    sync.Mutex
	links map[string]string // version's directory → directory to read, from the last Contents
}

var (
	_ source.Source = (*Source)(nil)
	_ source.Writer = (*Source)(nil)
)

// New returns a source in a store, which Close closes.
func New(store Store, o Options) *Source {
	if o.Memory <= 0 {
		o.Memory = DefaultMemory
	}
	return &Source{
		store: store, root: strings.Trim(path.Clean("/"+o.Root), "/"), maxRetries: max(0, o.MaxRetries),
		memory: o.Memory, budget: semaphore.NewWeighted(o.Memory), links: map[string]string{},
	}
}

// Close closes the connections. Pending and later calls and reads fail.
func (s *Source) Close() error { return s.store.Close() }

// Path returns the location of a version for messages: of a link, the link itself.
func (s *Source) Path(db, version string) string {
	return s.store.URL(path.Join(s.root, db, version))
}

// Key returns the key of a file for Open: of a linked version, that of its target.
func (s *Source) Key(ctx context.Context, db, version string, file source.File) (string, error) {
	key, err := source.FilePath(db, version, file.Name)
	key = path.Join(s.root, key)
	if err != nil {
		return "", s.fail(ctx, "open", key, err)
	}
	if version == "" {
		return key, nil
	}
	dir, err := s.resolve(ctx, path.Join(s.root, db, version))
	return dir + "/" + file.Name, err
}

// fail returns the error for a failed operation on a key.
func (s *Source) fail(ctx context.Context, op, key string, err error) error {
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return &fs.PathError{Op: op, Path: s.store.URL(key), Err: err}
}
