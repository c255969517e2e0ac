package gcs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"sequins/source"
	"sequins/source/objects"
)

// emulatorVariable is the variable of the environment with the address of an emulator, as Google's clients know it.
const emulatorVariable = "STORAGE_EMULATOR_HOST"

// defaultEndpoint is the server of Google.
const defaultEndpoint = "https://storage.googleapis.com"

// Options configures a Source.
type Options struct {
	// URL is gs://bucket/prefix. The prefix may be empty.
	URL string

	// CredentialsFile is a JSON file with credentials, as in GOOGLE_APPLICATION_CREDENTIALS. If it is empty, application
	// default credentials are used.
	CredentialsFile string

	// Endpoint is the http:// or https:// URL of another server. If it is empty, it is STORAGE_EMULATOR_HOST of the
	// environment, where no credentials are sent, or Google's.
	Endpoint string

	// Anonymous omits credentials.
	Anonymous bool

	// MaxRetries is the number of consecutive retries of a request. Negative means 0.
	MaxRetries int

	// Timeout bounds the wait for a silent server. 0 means objects.DefaultTimeout.
	Timeout time.Duration

	// Memory bounds the read-ahead of all readers, see objects.Options.
	Memory int64

	// Dial connects to servers. nil means a net.Dialer with Timeout.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Source is a prefix of a bucket.
type Source struct {
	*objects.Source
	store *store
}

var _ source.Checksummer = (*Source)(nil)

// Identity implements source.Identified. It gets a token.
func (s *Source) Identity(ctx context.Context) (string, error) {
	tokens := s.store.client.tokens
	if tokens == nil {
		return "nobody: requests have no credentials", nil
	}
	if _, err := tokens.get(ctx); err != nil {
		return "", fmt.Errorf("gs: %w", err)
	}
	return tokens.describe(), nil
}

// New returns the source described by o. It does not connect, and reads no credentials.
func New(o Options) (*Source, error) {
	bucket, root, err := parseURL(o.URL)
	if err != nil {
		return nil, fmt.Errorf("gs: %w", err)
	}
	endpoint, emulator, err := o.endpoint()
	if err != nil {
		return nil, fmt.Errorf("gs: %w", err)
	}
	o.MaxRetries = max(0, o.MaxRetries)
	conns := objects.NewConnections(o.Timeout, o.Dial)
	s := &store{
		bucket: bucket, conns: conns,
		client: client{http: conns.Client(), endpoint: endpoint, maxRetries: o.MaxRetries},
	}
	if !o.Anonymous && !emulator {
		s.client.tokens = newTokens(s.client.http, o.CredentialsFile)
	}
	return &Source{objects.New(s, objects.Options{Root: root, MaxRetries: o.MaxRetries, Memory: o.Memory}), s}, nil
}

// endpoint returns the scheme and host of the server, and reports whether it is that of STORAGE_EMULATOR_HOST.
func (o *Options) endpoint() (endpoint string, emulator bool, err error) {
	if host := strings.TrimSpace(os.Getenv(emulatorVariable)); o.Endpoint == "" && host != "" {
		endpoint, err = parseEndpoint(emulatorURL(host))
		return endpoint, true, err
	}
	endpoint, err = parseEndpoint(cmp.Or(o.Endpoint, defaultEndpoint))
	return endpoint, false, err
}

func parseURL(raw string) (bucket, root string, err error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return "", "", err
	case u.Scheme != "gs" || u.Host == "":
		return "", "", fmt.Errorf("%q is not of the form gs://bucket/prefix", raw)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return "", "", errors.New("a source must be of the form gs://bucket/prefix: set GOOGLE_APPLICATION_CREDENTIALS for credentials")
	}
	return u.Host, u.Path, nil
}

// emulatorURL returns the URL of STORAGE_EMULATOR_HOST, which may lack the scheme.
func emulatorURL(host string) string {
	if strings.Contains(host, "://") {
		return host
	}
	return "http://" + host
}

// parseEndpoint returns the scheme and the host of a URL.
func parseEndpoint(raw string) (string, error) {
	u, err := objects.ParseEndpoint(raw)
	if err != nil {
		return "", err
	}
	return u.Scheme + "://" + u.Host, nil
}

// Checksum returns the MD5 of a listed object, which GCS computes, or "" for an object that was composed of others and has
// none. It takes a request.
func (s *Source) Checksum(ctx context.Context, db, version string, file source.File) (string, error) {
	key, err := s.Key(ctx, db, version, file)
	if err != nil {
		return "", err
	}
	md5, err := s.store.md5(ctx, key, file.Mark)
	if err != nil {
		return "", fmt.Errorf("the checksum of %s: %w", s.store.URL(key), err)
	}
	if md5 == "" {
		return "", nil
	}
	return "md5 " + md5, nil
}
