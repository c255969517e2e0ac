package main

import (
	"errors"
	"io/fs"
	"strings"
	"syscall"

	"sequins/config"
	"sequins/source/azure"
	"sequins/source/gcs"
	"sequins/source/hdfs"
	"sequins/source/s3"
)

// sourceAdvice is advice for an error of the source. If another machine refuses access, it says which credentials to look at.
func (d *deep) sourceAdvice(err error) string {
	var here syscall.Errno // of a file of this machine
	if !errors.Is(err, fs.ErrPermission) || errors.As(err, &here) {
		return advice(err)
	}
	src, _ := d.source()
	switch src.(type) {
	case *s3.Source:
		return s3Access(&d.c.S3)
	case *gcs.Source:
		return gcsAccess(&d.c.GS)
	case *azure.Source:
		return azureAccess(&d.c.Azure)
	case *hdfs.Source:
		return hdfsAccess(&d.c.HDFS)
	}
	return advice(err)
}

// credentials are keys of the configuration with credentials. The first that is set is used.
type credentials []struct{ key, value string }

// set returns the key that is set, "" if there is none.
func (all credentials) set() string {
	for _, c := range all {
		if c.value != "" {
			return c.key
		}
	}
	return ""
}

// lookAt says which credentials to look at: those of a key of the configuration, or others, for which the key could be set instead.
func lookAt(set, instead string) string {
	if set == "" {
		return "; look at the credentials that are named here, or set " + instead
	}
	return "; look at " + set
}

func s3Access(c *config.S3) string {
	const needs = ": the key must be one of this server, and have s3:ListBucket and s3:GetObject"
	secret := credentials{{"s3.secret_access_key_file", c.SecretAccessKeyFile}, {"s3.secret_access_key", c.SecretAccessKey}}.set()
	if c.AccessKeyID == "" || secret == "" {
		secret = ""
	} else {
		secret = "s3.access_key_id and " + secret
	}
	return lookAt(secret, "s3.access_key_id and s3.secret_access_key") + needs
}

func gcsAccess(c *config.GS) string {
	return lookAt(credentials{{"gs.credentials_file", c.CredentialsFile}}.set(), "gs.credentials_file") +
		": the account needs storage.objects.list and storage.objects.get, as in the role Storage Object Viewer"
}

func azureAccess(c *config.Azure) string {
	set := credentials{
		{"azure.connection_string", c.ConnectionString}, {"azure.connection_string_file", c.ConnectionStringFile},
		{"azure.account_key", c.AccountKey}, {"azure.account_key_file", c.AccountKeyFile},
		{"azure.sas_token", c.SASToken}, {"azure.sas_token_file", c.SASTokenFile},
	}.set()
	needs := ": a SAS token must not have expired and needs the permissions read and list; an identity needs the role Storage Blob Data Reader"
	if strings.HasPrefix(set, "azure.account_key") {
		needs = ": it must be a key of this account"
	}
	return lookAt(set, "azure.account_key, azure.sas_token or azure.connection_string") + needs
}

func hdfsAccess(c *config.HDFS) string {
	switch {
	case c.Keytab != "":
		return "; look at hdfs.principal and hdfs.keytab, and give this principal the right in HDFS"
	case c.CredentialCache != "":
		return "; look at hdfs.credential_cache, and give its principal the right in HDFS"
	}
	return "; give this user the right in HDFS, or set hdfs.user, or hdfs.principal and hdfs.keytab with Kerberos"
}
