package main

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

// retries is how often a request to an object store is repeated before a load fails, which is tried again later.
const retries = 3

// openSource returns the configured source, without accessing it. It reads the files of its secrets.
func openSource(ctx context.Context, c *config.Config) (src source.Source, err error) {
	switch scheme, _, _ := strings.Cut(c.Source, "://"); {
	case scheme == "s3" || scheme == "s3a" || scheme == "s3n":
		src, err = openS3(ctx, c)
	case scheme == "gs":
		src, err = gcs.New(gcsOptions(c.Source))
	case slices.Contains(azure.Schemes, scheme):
		src, err = openAzure(c)
	case scheme == "hdfs":
		src, err = hdfs.New(hdfsOptions(c.Source, &c.HDFS))
	default:
		src, err = local.New(c.Source)
	}
	if err != nil {
		return nil, fmt.Errorf("source: %w", err)
	}
	return src, nil
}

func openS3(ctx context.Context, c *config.Config) (*s3.Source, error) {
	if err := c.ReadSecrets("s3"); err != nil {
		return nil, err
	}
	o := s3Options(c.Source, &c.S3)
	o.SecretAccessKey = c.S3.SecretAccessKey
	return s3.New(ctx, o)
}

// s3Options returns the options of a source in S3 without the secret of the access key.
func s3Options(source string, s *config.S3) s3.Options {
	return s3.Options{
		URL:         source,
		Region:      s.Region,
		AccessKeyID: s.AccessKeyID,
		Endpoint:    s.Endpoint,
		PathStyle:   s.PathStyle,
		MaxRetries:  retries,
	}
}

// gcsOptions returns the options of a source in Google Cloud Storage, whose credentials are those of the environment.
func gcsOptions(source string) gcs.Options { return gcs.Options{URL: source, MaxRetries: retries} }

func hdfsOptions(source string, h *config.HDFS) hdfs.Options {
	return hdfs.Options{
		URL:       source,
		ConfigDir: h.ConfigDir,
		Principal: h.Principal,
		Keytab:    h.Keytab,
	}
}

func openAzure(c *config.Config) (*azure.Source, error) {
	if err := c.ReadSecrets("azure"); err != nil {
		return nil, err
	}
	return azure.New(azureOptions(c.Source, &c.Azure))
}

func azureOptions(source string, a *config.Azure) azure.Options {
	return azure.Options{URL: source, AccountKey: a.AccountKey, SASToken: a.SASToken, Endpoint: a.Endpoint, MaxRetries: retries}
}
