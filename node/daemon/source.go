package daemon

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"sequins/config"
	"sequins/source"
	"sequins/source/azure"
	"sequins/source/gcs"
	"sequins/source/hdfs"
	"sequins/source/local"
	"sequins/source/s3"
)

// OpenSource returns the configured source, without accessing it. It reads the files of its secrets.
func OpenSource(ctx context.Context, c *config.Config) (src source.Source, err error) {
	switch scheme, _, _ := strings.Cut(c.Source, "://"); {
	case scheme == "s3" || scheme == "s3a" || scheme == "s3n":
		if err = c.ReadSecrets("s3"); err == nil {
			src, err = s3.New(ctx, s3.Options{URL: c.Source, Region: c.S3.Region, AccessKeyID: c.S3.AccessKeyID, SecretAccessKey: c.S3.SecretAccessKey,
				Endpoint: c.S3.Endpoint, PathStyle: c.S3.PathStyle})
		}
	case scheme == "gs": // its credentials are those of the environment
		src, err = gcs.New(gcs.Options{URL: c.Source})
	case slices.Contains(azure.Schemes, scheme):
		if err = c.ReadSecrets("azure"); err == nil {
			src, err = azure.New(azure.Options{URL: c.Source, AccountKey: c.Azure.AccountKey, SASToken: c.Azure.SASToken, Endpoint: c.Azure.Endpoint})
		}
	case scheme == "hdfs":
		src, err = hdfs.New(hdfs.Options{URL: c.Source, ConfigDir: c.HDFS.ConfigDir, Principal: c.HDFS.Principal, Keytab: c.HDFS.Keytab})
	default:
		src, err = local.New(c.Source)
	}
	if err != nil {
		return nil, fmt.Errorf("source: %w", err)
	}
	return src, nil
}
