package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"sequins/config"
	"sequins/source"
	"sequins/source/hdfs"
	"sequins/source/local"
	"sequins/source/s3"
)

// openSource returns the configured source, without accessing it.
func openSource(ctx context.Context, c *config.Config) (src source.Source, err error) {
	switch scheme, _, _ := strings.Cut(c.Source, "://"); scheme {
	case "s3", "s3a", "s3n":
		secret, unread := s3Secret(&c.S3)
		if unread != nil {
			return nil, unread
		}
		src, err = s3.New(ctx, s3.Options{
			URL:             c.Source,
			Region:          c.S3.Region,
			AccessKeyID:     c.S3.AccessKeyID,
			SecretAccessKey: secret,
			Endpoint:        c.S3.Endpoint,
			PathStyle:       c.S3.PathStyle,
			MaxRetries:      c.S3.MaxRetries,
		})
	case "hdfs":
		src, err = hdfs.New(hdfs.Options{
			URL:               c.Source,
			ConfigDir:         c.HDFS.ConfigDir,
			User:              c.HDFS.User,
			Principal:         c.HDFS.Principal,
			Keytab:            c.HDFS.Keytab,
			CredentialCache:   c.HDFS.CredentialCache,
			Krb5Conf:          c.HDFS.Krb5Conf,
			NamenodePrincipal: c.HDFS.NamenodePrincipal,
			Protection:        c.HDFS.DataTransferProtection,
			Timeout:           c.HDFS.Timeout,
			RetryFor:          c.HDFS.RetryFor,
		})
	default:
		src, err = local.New(c.Source)
	}
	if err != nil {
		return nil, fmt.Errorf("source: %w", err)
	}
	return src, nil
}

// s3Secret returns the secret of the access key, "" if the configuration has none.
func s3Secret(s *config.S3) (string, error) {
	return readValue("s3.secret_access_key_file", s.SecretAccessKey, s.SecretAccessKeyFile, func(secret string) error {
		if secret == "" {
			return errors.New("is empty")
		}
		return nil
	})
}
