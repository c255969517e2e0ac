package s3

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	"sequins/source/objects"
)

// DefaultMemory is the default of Options.Memory.
const DefaultMemory = objects.DefaultMemory

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

	// Timeout bounds the wait for a silent server. 0 means objects.DefaultTimeout.
	Timeout time.Duration

	// Memory bounds the read-ahead of all readers, in bytes, in addition to one
	// part of at most 4 MiB per reader. 0 means DefaultMemory.
	Memory int64

	// Dial connects to servers. nil means a net.Dialer with Timeout.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Source is a prefix of a bucket.
type Source struct {
	*objects.Source
	store *store
}

// New returns the source described by o. It does not connect, unless it has to
// ask for the region.
func New(ctx context.Context, o Options) (*Source, error) {
	bucket, root, err := parseURL(o.URL)
	if err != nil {
		return nil, fmt.Errorf("s3: %w", err)
	}
	o.MaxRetries = max(0, o.MaxRetries)
	s := &store{bucket: bucket, conns: objects.NewConnections(o.Timeout, o.Dial)}
	if s.client, err = newClient(ctx, o, s.conns); err != nil {
		return nil, fmt.Errorf("s3: %w", err)
	}
	return &Source{objects.New(s, objects.Options{Root: root, MaxRetries: o.MaxRetries, Memory: o.Memory}), s}, nil
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
	return u.Host, u.Path, nil
}
