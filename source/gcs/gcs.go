package gcs

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"sequins/source"
	"sequins/source/objects"
)

// emulatorVariable is the variable of the environment with the address of an emulator, as Google's clients know it.
const emulatorVariable = "STORAGE_EMULATOR_HOST"

// googleServer is the URL of Google's server.
const googleServer = "https://storage.googleapis.com"

// Options configures a Source.
type Options struct {
	// URL is gs://bucket/prefix. The prefix may be empty.
	URL string

	objects.Options
}

// Source is a prefix of a bucket.
type Source struct {
	*objects.Source
	store *store
}

var _ source.Checksummer = (*Source)(nil)

// New returns the source described by o. It does not connect, and reads no credentials. To the server of
// STORAGE_EMULATOR_HOST, requests are sent without credentials.
func New(o Options) (*Source, error) {
	host := strings.TrimSpace(os.Getenv(emulatorVariable))
	if host == "" {
		return newSource(o, googleServer, true)
	}
	if !strings.Contains(host, "://") {
		host = "http://" + host
	}
	return newSource(o, host, false)
}

// newSource returns a source on a server, with application default credentials or without.
func newSource(o Options, server string, credentials bool) (*Source, error) {
	bucket, root, err := objects.ParseURL(o.URL, "GOOGLE_APPLICATION_CREDENTIALS for credentials", "gs")
	if err != nil {
		return nil, fmt.Errorf("gs: %w", err)
	}
	endpoint, err := objects.ParseEndpoint(server)
	if err != nil {
		return nil, fmt.Errorf("gs: %w", err)
	}
	client := o.Client()
	s := &store{bucket: bucket, endpoint: endpoint.Scheme + "://" + endpoint.Host}
	var policies runtime.PipelineOptions
	if credentials {
		s.tokens = newTokens(client)
		policies.PerRetry = []policy.Policy{s.tokens}
	}
	options := client.Pipeline()
	options.Telemetry.Disabled = true
	s.pipeline = runtime.NewPipeline("", "", policies, &options)
	return &Source{objects.New(s, o.Options, root), s}, nil
}

// Checksum returns the MD5 of a listed object, which GCS computes, or "" for an object that was composed of others and has
// none. It takes a request.
func (s *Source) Checksum(ctx context.Context, db, version string, file source.File) (string, error) {
	key, err := s.Key(ctx, db, version, file, source.ReadOptions{})
	if err != nil {
		return "", err
	}
	var r resource
	if _, err = s.store.getJSON(ctx, key, url.Values{"fields": {"generation,md5Hash"}}, &r); err == nil && r.Generation != file.Mark {
		err = fmt.Errorf("%w: listed as generation %s, now %s", source.ErrChanged, file.Mark, r.Generation)
	}
	if err != nil {
		return "", fmt.Errorf("the checksum of %s: %w", s.store.URL(key), err)
	}
	if r.MD5 == "" {
		return "", nil
	}
	return "md5 " + r.MD5, nil
}
