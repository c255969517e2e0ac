package s3

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/service/s3"
	"golang.org/x/sync/semaphore"

	"sequins/source"
)

// DefaultTimeout is that of Options.
const DefaultTimeout = 20 * time.Second

// DefaultMemory is that of Options: four readers at full speed.
const DefaultMemory = 4 * maxWindow

// Options say where the data is and who reads it.
type Options struct {
	// URL is s3://bucket/prefix. The prefix may be empty.
	URL string

	// Region is the bucket's. Empty stands for that of the environment, the
	// SDK's shared files, or the instance this runs on.
	Region string

	// AccessKeyID and SecretAccessKey are the key pair. If both are empty, the
	// SDK looks for one in all the places that it knows.
	AccessKeyID, SecretAccessKey string

	// Endpoint is the http:// or https:// URL of a server other than Amazon's.
	Endpoint string

	// PathStyle puts the name of the bucket into the path of URLs, as most of
	// these servers need it, and not into the name of the host.
	PathStyle bool

	// MaxRetries is how many times in a row a request is tried again. A
	// negative number is 0.
	MaxRetries int

	// Timeout is how long to wait for a server that says nothing. 0 is
	// DefaultTimeout.
	Timeout time.Duration

	// Memory bounds what all readers together have read ahead, in bytes, but
	// for one part of at most 4 MiB each, which every reader may have. 0 is
	// DefaultMemory.
	Memory int64

	// Dial connects to servers. nil is net.Dialer's, which waits for Timeout at
	// most.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// A Source is a prefix of a bucket. It keeps connections open, until Close or
// until they have not been used for a while.
type Source struct {
	bucket string
	root   string // the prefix, without slashes around it
	client *sdk.Client
	conns  *connections

	maxRetries int
	memory     int64               // Options.Memory
	budget     *semaphore.Weighted // of it
	readers    atomic.Int64        // that are open
	buffers    [classes]sync.Pool  // of *[]byte, for parts, by size

	mu    sync.Mutex
	links map[string]string // version's directory → the one to read, as Files found it last
}

var (
	_ source.Source   = (*Source)(nil)
	_ source.Reporter = (*Source)(nil)
)

// New returns the source that o describes. It connects to nobody, unless the
// region is not known and has to be asked for: whether anything is there is
// found out by listing it.
func New(ctx context.Context, o Options) (*Source, error) {
	bucket, root, err := parseURL(o.URL)
	if err != nil {
		return nil, fmt.Errorf("s3: %w", err)
	}
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Memory <= 0 {
		o.Memory = DefaultMemory
	}
	o.MaxRetries = max(0, o.MaxRetries)
	s := &Source{
		bucket: bucket, root: root, conns: newConnections(o), maxRetries: o.MaxRetries,
		memory: o.Memory, budget: semaphore.NewWeighted(o.Memory), links: map[string]string{},
	}
	if s.client, err = newClient(ctx, o, s.conns); err != nil {
		return nil, fmt.Errorf("s3: %w", err)
	}
	return s, nil
}

func parseURL(raw string) (bucket, root string, err error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return "", "", err
	case u.Scheme != "s3" || u.Host == "":
		return "", "", fmt.Errorf("%q is not of the form s3://bucket/prefix", raw)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return "", "", errors.New("a source of the form s3://bucket/prefix has nothing else in it: keys belong into access_key_id and secret_access_key")
	}
	return u.Host, strings.Trim(path.Clean("/"+u.Path), "/"), nil
}

// Close closes the connections. Calls and readers under way fail, and so do
// later ones.
func (s *Source) Close() error {
	s.conns.close()
	return nil
}

// Path returns where a version is, as a person would write it down. A link's
// is its own.
func (s *Source) Path(db, version string) string {
	return s.display(path.Join(s.root, db, version))
}

// display returns the URL of a key.
func (s *Source) display(key string) string {
	return "s3://" + s.bucket + "/" + key
}
