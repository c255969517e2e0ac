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

// DefaultTimeout is the default of Options.Timeout.
const DefaultTimeout = 20 * time.Second

// DefaultMemory is the default of Options.Memory: four readers at full speed.
const DefaultMemory = 4 * maxWindow

// Options configures a Source.
type Options struct {
	// URL is s3://bucket/prefix. The prefix may be empty. The schemes s3a and s3n, of Hadoop's file systems, mean the same.
	URL string

	// Region is the bucket's region. If empty, it is taken from the environment,
	// the SDK's shared files, or the EC2 instance.
	Region string

	// AccessKeyID and SecretAccessKey are the access key. If both are empty, the
	// SDK's default credential chain is used.
	AccessKeyID, SecretAccessKey string

	// Endpoint is the http:// or https:// URL of a server other than Amazon's.
	Endpoint string

	// PathStyle puts the bucket's name into the path of URLs, as most other
	// servers require, rather than into the host name.
	PathStyle bool

	// MaxRetries is the number of consecutive retries of a request. Negative
	// means 0.
	MaxRetries int

	// Timeout bounds the wait for a silent server. 0 means DefaultTimeout.
	Timeout time.Duration

	// Memory bounds the read-ahead of all readers, in bytes, in addition to one
	// part of at most 4 MiB per reader. 0 means DefaultMemory.
	Memory int64

	// Dial connects to servers. nil means a net.Dialer with Timeout.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Source is a prefix of a bucket. Its idle connections are closed by Close or
// after a timeout.
type Source struct {
	bucket string
	root   string // prefix without surrounding slashes
	client *sdk.Client
	conns  *connections

	maxRetries int
	memory     int64               // Options.Memory
	budget     *semaphore.Weighted // limits memory
	readers    atomic.Int64        // open readers
	buffers    [classes]sync.Pool  // of *[]byte, by size of part

	mu    sync.Mutex
	links map[string]string // version's directory → directory to read, from the last Contents
}

var (
	_ source.Source   = (*Source)(nil)
	_ source.Reporter = (*Source)(nil)
)

// New returns the source described by o. It does not connect, unless it has to
// ask for the region.
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
	case u.Scheme != "s3" && u.Scheme != "s3a" && u.Scheme != "s3n" || u.Host == "":
		return "", "", fmt.Errorf("%q is not of the form s3://bucket/prefix", raw)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return "", "", errors.New("a source must be of the form s3://bucket/prefix: set keys in access_key_id and secret_access_key")
	}
	return u.Host, strings.Trim(path.Clean("/"+u.Path), "/"), nil
}

// Close closes the connections. Pending and later calls and reads fail.
func (s *Source) Close() error {
	s.conns.close()
	return nil
}

// Path returns the location of a version for messages: of a link, the link
// itself.
func (s *Source) Path(db, version string) string {
	return s.display(path.Join(s.root, db, version))
}

// display returns the URL of a key.
func (s *Source) display(key string) string {
	return "s3://" + s.bucket + "/" + key
}
