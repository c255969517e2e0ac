package main

import (
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"sequins/config"
	"sequins/source"
	"sequins/source/azure"
	"sequins/source/gcs"
	"sequins/source/hdfs"
	"sequins/source/local"
	"sequins/source/s3"
)

// Where another machine refuses access, the advice names credentials; the user of the process counts for local files only.
func TestAdviceAboutAccess(t *testing.T) {
	const asUser = "run this as the user of the service"
	refused, here := fmt.Errorf("s3://b/x: %w (SignatureDoesNotMatch)", fs.ErrPermission), &fs.PathError{Op: "open", Path: "/keytab", Err: syscall.EACCES}
	for _, test := range []struct {
		src    source.Source
		change func(*config.Config)
		err    error
		want   string
	}{
		{&local.Source{}, nil, here, asUser},
		{&local.Source{}, nil, refused, asUser},
		{&s3.Source{}, nil, refused, "; look at the credentials that are named here, or set s3.access_key_id and s3.secret_access_key: the key must"},
		{&s3.Source{}, func(c *config.Config) { c.S3.AccessKeyID, c.S3.SecretAccessKeyFile = "k", "/f" }, refused, "; look at s3.access_key_id and s3.secret_access_key_file: the key must"},
		{&s3.Source{}, nil, fs.ErrNotExist, "; create it, or correct the path"},
		{&gcs.Source{}, nil, refused, "; look at the credentials that are named here, or set gs.credentials_file: the account needs"},
		{&gcs.Source{}, func(c *config.Config) { c.GS.CredentialsFile = "/f" }, refused, "; look at gs.credentials_file: the account needs"},
		{&gcs.Source{}, nil, here, asUser},
		{&azure.Source{}, nil, refused, "an identity needs the role Storage Blob Data Reader"},
		{&azure.Source{}, func(c *config.Config) { c.Azure.SASTokenFile = "/f" }, refused, "; look at azure.sas_token_file: a SAS token must not have expired"},
		{&azure.Source{}, func(c *config.Config) { c.Azure.AccountKey = "k" }, refused, "; look at azure.account_key: it must be a key of this account"},
		{&hdfs.Source{}, nil, refused, "; give this user the right in HDFS, or set hdfs.user"},
		{&hdfs.Source{}, func(c *config.Config) { c.HDFS.Keytab = "/k" }, refused, "; look at hdfs.principal and hdfs.keytab"},
		{&hdfs.Source{}, func(c *config.Config) { c.HDFS.CredentialCache = "/k" }, refused, "; look at hdfs.credential_cache"},
		{&hdfs.Source{}, func(c *config.Config) { c.HDFS.Keytab = "/k" }, here, asUser},
	} {
		c := config.Default()
		if test.change != nil {
			test.change(&c)
		}
		d := &deep{c: &c, source: func() (source.Source, error) { return test.src, nil }}
		if got := d.sourceAdvice(test.err); !strings.Contains(got, test.want) || strings.Contains(got, asUser) != (test.want == asUser) {
			t.Errorf("%T, %v: %q, want %q", test.src, test.err, got, test.want)
		}
	}
}
