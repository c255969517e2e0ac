package s3

import (
	"context"
	"fmt"

	"sequins/source/objects"
)

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

	objects.Options
}

// New returns the source described by o. It does not connect, unless it has to
// ask for the region.
func New(ctx context.Context, o Options) (*objects.Source, error) {
	bucket, root, err := objects.ParseURL(o.URL, "keys in access_key_id and secret_access_key", "s3", "s3a", "s3n")
	if err != nil {
		return nil, fmt.Errorf("s3: %w", err)
	}
	client, err := newClient(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("s3: %w", err)
	}
	return objects.New(&store{bucket: bucket, client: client}, o.Options, root), nil
}
