package objects

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
)

// Location returns the canonical text of where the source is: its URL, with a bucket that may have an account, and the
// endpoint of the server, "" for that of the scheme. The text is one line and has no secrets: of the endpoint it has the
// scheme, host and path. Spaces of the prefix are escaped, so that " at " is always before the endpoint.
func (s *Source) Location(scheme, bucket, endpoint string) string {
	text := scheme + "://" + bucket + EscapePath(s.root)
	if endpoint != "" {
		text += " at " + CanonicalEndpoint(endpoint)
	}
	return text
}

// EscapePath returns a clean absolute path as it is in a URL, and "" for the root.
func EscapePath(p string) string {
	u := url.URL{Path: strings.TrimSuffix(path.Clean("/"+p), "/")}
	return u.EscapedPath()
}

// CanonicalEndpoint returns the URL of a server without user, password, query and fragment, with the host in lower case, and without
// the default port and a slash at the end.
func CanonicalEndpoint(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return "an endpoint that is not a URL" // parts of it may be secret
	}
	host := strings.ToLower(u.Host)
	switch u.Scheme {
	case "http":
		host = strings.TrimSuffix(host, ":80")
	case "https":
		host = strings.TrimSuffix(host, ":443")
	}
	return u.Scheme + "://" + (&url.URL{Host: strings.TrimSuffix(host, ":")}).String()[2:] + EscapePath(u.Path)
}

// ParseEndpoint parses the URL of a server: http:// or https://, a host, and maybe a path. The error does not contain the URL, because
// what it must not have may be secret.
func ParseEndpoint(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return nil, errors.New("endpoint: it is not an http:// or https:// URL without user, password and query")
	}
	return u, nil
}

// ParseURL returns the bucket and the path of the URL of a source, which has one of some schemes. hint is where credentials are
// set.
func ParseURL(raw, hint string, schemes ...string) (bucket, root string, err error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return "", "", err
	case !slices.Contains(schemes, u.Scheme) || u.Host == "":
		return "", "", fmt.Errorf("%q is not of the form %s://bucket/prefix", raw, schemes[0])
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return "", "", fmt.Errorf("a source must be of the form %s://bucket/prefix: set %s", schemes[0], hint)
	}
	return u.Host, u.Path, nil
}
