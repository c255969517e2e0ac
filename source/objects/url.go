package objects

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
)

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
