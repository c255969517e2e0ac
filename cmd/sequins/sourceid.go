package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"sequins/config"
	"sequins/source/azure"
	"sequins/source/gcs"
	"sequins/source/hdfs"
	"sequins/source/local"
	"sequins/source/s3"
)

// maxSourceID is the maximum size of a source's ID.
const maxSourceID = 8 << 10

// sourceID returns the source of a configuration with everything else that decides where it is, so that a node notices another
// server behind the same URL: a bucket of the same name on another server has other data.
//
//   - s3://bucket/prefix, with " at " and the endpoint of the configuration, the environment or the SDK's files, if there is one,
//     otherwise with " in " and the partition of the region, such as aws-cn, if it is not the public one. Within a partition, the
//     region is not part of it, because names of buckets are unique.
//   - gs://bucket/prefix, with " at " and the endpoint, if it is not Google's.
//   - abfss://container@account.dfs.core.windows.net/path, whatever names the account; abfss://container/path with " at " and the
//     endpoint of another server, which may be from a connection string.
//   - hdfs://host:port/path, or hdfs://nameservice/path with " at " and the sorted addresses of the namenodes. With the nameservice
//     alone, the cluster of the same name in another environment would not be noticed. That another address of a namenode of the same
//     cluster makes another ID costs a comparison of the files, not a load.
//   - the absolute path of a local source. What is mounted there is not part of it.
//
// The text is one line of at most maxSourceID bytes. Equivalent spellings, such as a slash at the end or s3a://, have one ID. It has no
// secrets, and nothing of how the source is accessed: credentials, users, and the style of URLs do not decide where it is. What
// names resolve to is not part of it either: sourceID sends no requests. If the source cannot be opened with the configuration, the
// ID is the URL without what may be secret.
func sourceID(c *config.Config) string {
	id, err := locate(c)
	if err != nil {
		id = harmlessURL(c.Source)
	}
	return printableLine(id)
}

func locate(c *config.Config) (string, error) {
	switch scheme, _, _ := strings.Cut(c.Source, "://"); {
	case scheme == "s3" || scheme == "s3a" || scheme == "s3n":
		return s3.Location(context.Background(), s3Options(c.Source, &c.S3))
	case scheme == "gs":
		return gcs.Location(gcsOptions(c.Source))
	case slices.Contains(azure.Schemes, scheme):
		return azure.Location(azureOptions(c.Source, &c.Azure))
	case scheme == "hdfs":
		return hdfs.Location(hdfsOptions(c.Source, &c.HDFS))
	case strings.Contains(c.Source, "://") && !strings.EqualFold(scheme, "file"):
		return harmlessURL(c.Source), nil
	}
	src, err := local.New(c.Source)
	if err != nil {
		return "", err
	}
	return src.Path("", ""), nil
}

// harmlessURL returns the scheme, host and path of a URL that may be wrong.
func harmlessURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "a source that is not a URL"
	}
	return u.Scheme + "://" + u.Host + u.EscapedPath()
}

// printableLine returns a text with other than printable characters escaped, and what is too long replaced by its hash.
func printableLine(text string) string {
	var b strings.Builder
	for i, r := range text {
		if c := text[i]; r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			if r == unicode.ReplacementChar {
				fmt.Fprintf(&b, "%%%02X", c)
			} else {
				b.WriteString(url.PathEscape(string(r)))
			}
			continue
		}
		b.WriteRune(r)
	}
	line := b.String()
	if len(line) <= maxSourceID {
		return line
	}
	return fmt.Sprintf("%s... (SHA-256 %x)", strings.ToValidUTF8(line[:1<<10], ""), sha256.Sum256([]byte(text)))
}
