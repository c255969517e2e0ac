package config

import (
	"net/url"
	"path/filepath"
	"slices"
	"strings"
)

// Schemes of object stores: those of their own tools, and those of the file systems of Hadoop.
var (
	bucketSchemes = []string{"s3", "s3a", "s3n", "gs"}
	azureSchemes  = []string{"abfss", "abfs", "wasbs", "wasb"}
)

// isObjectStore reports whether a source is in an object store.
func isObjectStore(source string) bool {
	scheme, _, isURL := strings.Cut(source, "://")
	return isURL && (slices.Contains(bucketSchemes, scheme) || slices.Contains(azureSchemes, scheme))
}

// source checks the form of the source; the node checks whether it exists.
func (k *checker) source(key, v string) {
	if v == "" {
		k.problem(key, "is not set: name the directory or URL where the data is, here or with --source")
		return
	}
	scheme, rest, isURL := strings.Cut(v, "://")
	if !isURL {
		if !filepath.IsAbs(v) {
			k.problem(key, "%q is not an absolute path", shownURL(v))
		}
		return
	}
	u, err := url.Parse(v)
	switch {
	case err != nil:
		k.problem(key, "%q is not a valid URL", shownURL(v))
	case slices.Contains(azureSchemes, scheme):
		k.azureSource(key, v, u)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		k.problem(key, "has more than a host and a path: a user, a password, a query or a fragment")
	case scheme == "file" && u.Host != "":
		k.problem(key, "%q names a host; a local path has three slashes: file:///%s", v, rest)
	case scheme == "file" && u.Path == "":
		k.problem(key, "%q has no path", v)
	case slices.Contains(bucketSchemes, scheme) && u.Host == "":
		k.problem(key, "%q has no bucket: %s://bucket/path", v, scheme)
	case scheme != "file" && scheme != "hdfs" && !slices.Contains(bucketSchemes, scheme):
		k.problem(key, "%q is of none of the kinds file://, hdfs://, s3://, gs://, abfss://", v)
	case !isPort(u):
		k.problem(key, "%q has no valid port", v)
	}
}

// localSource returns the path of a source in the local file system, and whether it is one.
func (c *Config) localSource() (string, bool) {
	if !strings.Contains(c.Source, "://") {
		return c.Source, true
	}
	u, err := url.Parse(c.Source)
	if err != nil || u.Scheme != "file" {
		return "", false
	}
	return u.Path, true
}

// storeData is the subdirectory of the local store in which the node deletes files.
const storeData = "data"

// store checks the local store. It must not be inside the source, which would list it, and the source
// must not be inside storeData. A source elsewhere in the local store, as in older files, is safe.
func (k *checker) store(c *Config) {
	const key = "local_store"
	if !filepath.IsAbs(c.LocalStore) {
		k.problem(key, "%q is not an absolute path", c.LocalStore)
		return
	}
	if filepath.Clean(c.LocalStore) == "/" {
		k.problem(key, "%q is the root of the file system", c.LocalStore)
		return
	}
	source, local := c.localSource()
	if !local || !filepath.IsAbs(source) {
		return
	}
	if within(source, c.LocalStore) {
		k.problem(key, "%q is within the source, %q", c.LocalStore, source)
	} else if data := filepath.Join(c.LocalStore, storeData); within(data, source) {
		k.problem("source", "%q is within the local store's %q, in which everything else is deleted", source, data)
	} else if within(c.LocalStore, source) {
		k.warn("source", "%q is within the local store, %q; a directory of its own is safer", source, c.LocalStore)
	}
}

// within reports whether path is dir or below it. Both are absolute.
func within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

func (k *checker) s3(s *S3) {
	switch secret := s.SecretAccessKey != "" || s.SecretAccessKeyFile != ""; {
	case s.SecretAccessKey != "" && s.SecretAccessKeyFile != "":
		k.problem("s3.secret_access_key_file", "is set, and so is secret_access_key")
	case s.AccessKeyID != "" && !secret:
		k.problem("s3.access_key_id", "is set, and secret_access_key is not")
	case s.AccessKeyID == "" && s.SecretAccessKey != "":
		k.problem("s3.secret_access_key", "is set, and access_key_id is not")
	case s.AccessKeyID == "" && secret:
		k.problem("s3.secret_access_key_file", "is set, and access_key_id is not")
	}
	k.endpoint("s3.endpoint", s.Endpoint)
}

// endpoint checks the URL of a server.
func (k *checker) endpoint(key, v string) {
	u, err := url.Parse(v)
	switch {
	case v == "":
	case err != nil || !isHTTP(v):
		k.problem(key, "%q is not a URL of the form https://host:port", shownURL(v))
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		k.problem(key, "has more than host, port and path: credentials are set by keys of their own")
	}
}

func (k *checker) hdfs(h *HDFS) {
	if h.Keytab != "" && h.Principal == "" {
		k.problem("hdfs.keytab", "is set, and principal is not")
	}
	if h.Principal != "" && h.Keytab == "" {
		k.problem("hdfs.principal", "is set, and keytab is not")
	}
}
