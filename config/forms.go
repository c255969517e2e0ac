package config

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"sequins/node/turns"
)

const (
	// maxZone limits the name of a zone, in bytes: all nodes read those of all others.
	maxZone = 255
	// minSecret and maxSecretSize limit a shared secret, in bytes: it is sent in a header, and must be hard to guess.
	minSecret, maxSecretSize = 16, 512
)

// forms are the checks of texts, by the tag form. Errors of secrets do not contain them.
var forms = map[string]func(string) error{
	"source":        checkSource,
	"path":          checkPath,
	"address":       checkAddress,
	"origin":        checkOrigin,
	"Cache-Control": checkCacheControl,
	"header": func(v string) error {
		odd := strings.ContainsFunc(v, func(r rune) bool { return r < ' ' || r > '~' })
		return unless(!odd, "%q has characters that do not belong into a header", v)
	},
	"endpoint": func(v string) error { // of an object store
		return checkURL(v, "https://host:port", "credentials are set by keys of their own")
	},
	"collector": func(v string) error { // of OpenTelemetry
		if strings.HasSuffix(strings.TrimRight(v, "/"), "/v1/traces") {
			return fmt.Errorf("%q ends with /v1/traces, which is added to it", shownURL(v))
		}
		return checkURL(v, "http://host:port", "what else has to be sent is set by OTEL_EXPORTER_OTLP_HEADERS in the environment")
	},
	"cluster": func(v string) error {
		first, _, _ := strings.Cut(v, "/")
		return cmp.Or(unless(clusterName.MatchString(v), "%q is not the name of a cluster: letters, digits, and . _ - / between them", v),
			unless(first != "zookeeper", "%q is below /zookeeper, where ZooKeeper keeps its own znodes", v))
	},
	"host": func(v string) error { // by which other nodes reach this one
		return cmp.Or(unless(isHost(v), "%q is neither a host name nor an IP address; the port is that of bind", v),
			unless(!isEvery(v), "%q is no address that other nodes can connect to", v))
	},
	"server": func(v string) error { // with or without a port
		host, port, err := net.SplitHostPort(v)
		if err != nil {
			host, port = v, "1"
		}
		n, err := strconv.ParseUint(port, 10, 16)
		return unless(isHost(host) && err == nil && n > 0, "%q is not an address of the form host:port", shownURL(v))
	},
	"agent": func(v string) error { // of DogStatsD
		if path, socket := strings.CutPrefix(v, "unix://"); socket {
			return unless(filepath.IsAbs(path), "%q is not unix:// and an absolute path", v)
		}
		return checkAddress(v)
	},
	"webhook": func(v string) error { return unless(isHTTP(v), "is not an http:// or https:// URL") },
	"windows": func(v string) error {
		_, err := turns.ParseWindows(v)
		return err
	},
	"pattern": func(v string) error {
		_, err := regexp.Compile(v)
		return unless(err == nil, "is not a regular expression: %w", err)
	},
	"shard id": func(v string) error { // a part of names in ZooKeeper, which stands between separators
		return unless(!strings.ContainsAny(v, "/@") && isShown(v), "%q must not have a / or @ or characters that are not printed", v)
	},
	"zone": func(v string) error {
		return unless(len(v) <= maxZone && utf8.ValidString(v) && isShown(v), "is not one line of at most %d bytes of characters that are printed", maxZone)
	},
	"secret": func(v string) error {
		return unless(len(v) >= minSecret && len(v) <= maxSecretSize && secret.MatchString(v), "is not %d to %d letters, digits and -._~+/=", minSecret, maxSecretSize)
	},
	"user": func(v string) error {
		user, _, ok := strings.Cut(v, ":")
		return unless(ok && user != "", "is not of the form user:password")
	},
	"account key": func(v string) error {
		_, err := base64.StdEncoding.DecodeString(v)
		return unless(err == nil, "is not base64, as the keys of storage accounts are")
	},
	"SAS token": func(v string) error {
		return unless(strings.Contains(v, "sig=") && isShown(v) && !strings.ContainsFunc(v, unicode.IsSpace), "is not a SAS token of the form sv=…&sig=…, without white space")
	},
}

var secret = regexp.MustCompile(`^[A-Za-z0-9._~+/=-]+$`)

func unless(good bool, format string, args ...any) error {
	if good {
		return nil
	}
	return fmt.Errorf(format, args...)
}

// Schemes of object stores: those of their own tools, and those of the file systems of Hadoop.
var (
	bucketSchemes = []string{"s3", "s3a", "s3n", "gs"}
	azureSchemes  = []string{"abfss", "abfs", "wasbs", "wasb"}
)

// checkSource checks the form of the source; the node checks whether it exists.
func checkSource(v string) error {
	if v == "" {
		return errors.New("is not set: name the directory or URL where the data is, here or with --source")
	}
	scheme, rest, isURL := strings.Cut(v, "://")
	if !isURL {
		return checkPath(v)
	}
	u, err := url.Parse(v)
	if err != nil {
		return fmt.Errorf("%q is not a valid URL", shownURL(v))
	}
	_, password := u.User.Password()
	azure := slices.Contains(azureSchemes, scheme) // where a container is what is a user elsewhere
	switch {
	case password || u.User != nil && !azure || u.RawQuery != "" || u.Fragment != "":
		return errors.New("has more than a host and a path, such as a user, a password, a query or a fragment: credentials have keys of their own")
	case azure && (u.Host == "" || u.User != nil && u.User.Username() == ""):
		return fmt.Errorf("%q has no container: %s://container@account.dfs.core.windows.net/path", v, scheme)
	case azure:
		return nil
	case scheme == "file" && u.Host != "":
		return fmt.Errorf("%q names a host; a local path has three slashes: file:///%s", v, rest)
	case scheme == "file" && u.Path == "":
		return fmt.Errorf("%q has no path", v)
	case slices.Contains(bucketSchemes, scheme) && u.Host == "":
		return fmt.Errorf("%q has no bucket: %s://bucket/path", v, scheme)
	case scheme != "file" && scheme != "hdfs" && !slices.Contains(bucketSchemes, scheme):
		return fmt.Errorf("%q is of none of the kinds file://, hdfs://, s3://, gs://, abfss://", v)
	case !isPort(u):
		return fmt.Errorf("%q has no valid port", v)
	}
	return nil
}

func checkPath(v string) error {
	return unless(filepath.IsAbs(v), "%q is not an absolute path", shownURL(v))
}

// checkAddress checks a host:port to listen on. The port may be 0 or a service name.
func checkAddress(v string) error {
	host, port, err := net.SplitHostPort(v)
	if err != nil {
		return fmt.Errorf("%q is not an address of the form host:port", shownURL(v))
	}
	if host != "" && !isHost(host) {
		return fmt.Errorf("%q has no valid host", shownURL(v))
	}
	if _, err := net.LookupPort("tcp", port); err != nil || port == "" {
		return fmt.Errorf("%q has no valid port", shownURL(v))
	}
	return nil
}

func isEvery(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "" || err == nil && a.IsUnspecified()
}

// hostName is what a name of a host may be, with the _ that some have.
var hostName = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?)*\.?$`)

func isHost(s string) bool {
	_, err := netip.ParseAddr(s)
	return err == nil || len(s) <= 254 && hostName.MatchString(s)
}

// checkURL checks a URL of HTTP that has only a host, a port and a path. rest says where else the rest is set.
func checkURL(v, form, rest string) error {
	u, err := url.Parse(v)
	switch {
	case err != nil || !isHTTP(v):
		return fmt.Errorf("%q is not a URL of the form %s", shownURL(v), form)
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return fmt.Errorf("has more than host, port and path: %s", rest)
	}
	return nil
}

// isHTTP reports whether a string is an http:// or https:// URL with a host and, maybe, a port.
func isHTTP(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && isPort(u)
}

func isPort(u *url.URL) bool {
	n, err := strconv.ParseUint(u.Port(), 10, 16)
	return u.Port() == "" && !strings.HasSuffix(u.Host, ":") || err == nil && n > 0
}

// origin is the form in which browsers send an origin, with which it is compared.
var origin = regexp.MustCompile(`^[a-z][a-z0-9+.-]*://([a-z0-9._-]+|\[[0-9a-f:]+\])(:[1-9][0-9]*)?$`)

func checkOrigin(v string) error {
	u, err := url.Parse(v)
	switch {
	case v == "*":
		return nil
	case err != nil || !origin.MatchString(v) || !isPort(u):
		return fmt.Errorf(`%q is not an origin such as "https://app.example.com", in lower case and without a path, nor "*"`, shownURL(v))
	case u.Scheme == "https" && u.Port() == "443" || u.Scheme == "http" && u.Port() == "80":
		return fmt.Errorf("%q has a port that browsers leave out of an origin", v)
	}
	return nil
}

// directive is a directive of Cache-Control without a quoted argument, which no directive of a response needs here.
var directive = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+(=[!#$%&'*+.^_`|~0-9A-Za-z-]+)?$")

// seconds are the directives whose argument is a number.
var seconds = []string{"max-age", "s-maxage", "stale-while-revalidate", "stale-if-error"}

func checkCacheControl(v string) error {
	for item := range strings.SplitSeq(v, ",") {
		item = strings.Trim(item, " ")
		name, value, _ := strings.Cut(strings.ToLower(item), "=")
		switch {
		case !directive.MatchString(item):
			return fmt.Errorf("%q is not a directive such as max-age=60; several are separated by commas", item)
		case slices.Contains(seconds, name) && (value == "" || strings.Trim(value, "0123456789") != ""):
			return fmt.Errorf("%s needs a number of seconds: %s=60", name, name)
		}
	}
	return nil
}

var clusterName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*$`)

// isShown reports whether a text consists of characters that can be part of a name in ZooKeeper and be printed.
func isShown(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}

// userOfURL matches the beginning of a URL up to its user and password, also if these have characters that must be escaped.
var userOfURL = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9+.-]*://)?.*@`)

// shownURL returns a URL, which need not be valid, as problems show it: without user, password and query, which may be secret.
func shownURL(v string) string {
	v = userOfURL.ReplaceAllString(v, "$1***@")
	if i := strings.IndexAny(v, "?#"); i >= 0 {
		v = v[:i+1] + "***"
	}
	return v
}
