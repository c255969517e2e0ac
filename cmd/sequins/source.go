package main

import (
	"context"
	"errors"
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

// openSource returns the configured source, without accessing it.
func openSource(ctx context.Context, c *config.Config) (src source.Source, err error) {
	switch scheme, _, _ := strings.Cut(c.Source, "://"); {
	case scheme == "s3" || scheme == "s3a" || scheme == "s3n":
		src, err = openS3(ctx, c.Source, &c.S3)
	case scheme == "gs":
		src, err = gcs.New(gcsOptions(c.Source))
	case slices.Contains(azure.Schemes, scheme):
		src, err = openAzure(c.Source, &c.Azure)
	case scheme == "hdfs":
		src, err = openHDFS(c.Source, &c.HDFS)
	default:
		src, err = local.New(c.Source)
	}
	if err != nil {
		return nil, fmt.Errorf("source: %w", err)
	}
	return src, nil
}

func openS3(ctx context.Context, source string, s *config.S3) (*s3.Source, error) {
	secret, err := s3Secret(s)
	if err != nil {
		return nil, err
	}
	o := s3Options(source, s)
	o.SecretAccessKey = secret
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

func openHDFS(source string, h *config.HDFS) (*hdfs.Source, error) {
	return hdfs.New(hdfsOptions(source, h))
}

func hdfsOptions(source string, h *config.HDFS) hdfs.Options {
	return hdfs.Options{
		URL:       source,
		ConfigDir: h.ConfigDir,
		Principal: h.Principal,
		Keytab:    h.Keytab,
	}
}

func openAzure(source string, a *config.Azure) (*azure.Source, error) {
	o, err := azureOptions(source, a)
	if err != nil {
		return nil, err
	}
	return azure.New(o)
}

func azureOptions(source string, a *config.Azure) (azure.Options, error) {
	secrets, err := readAzureSecrets(a)
	return azure.Options{
		URL:        source,
		AccountKey: secrets.key,
		SASToken:   secrets.sas,
		Endpoint:   a.Endpoint,
		MaxRetries: retries,
	}, err
}

// s3Secret returns the secret of the access key, "" if the configuration has none.
func s3Secret(s *config.S3) (string, error) {
	return readValue("s3.secret_access_key_file", s.SecretAccessKey, s.SecretAccessKeyFile, notEmpty)
}

// azureSecrets are the secrets of [azure]; at most one is not empty.
type azureSecrets struct{ key, sas string }

func readAzureSecrets(a *config.Azure) (s azureSecrets, err error) {
	var errs [2]error
	s.key, errs[0] = readValue("azure.account_key_file", a.AccountKey, a.AccountKeyFile, config.CheckAccountKey)
	s.sas, errs[1] = readValue("azure.sas_token_file", a.SASToken, a.SASTokenFile, config.CheckSASToken)
	return s, errors.Join(errs[:]...)
}

func notEmpty(secret string) error {
	if secret == "" {
		return errors.New("is empty")
	}
	return nil
}
