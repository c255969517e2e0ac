package objects

import (
	"errors"
	"net/url"
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
