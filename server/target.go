package server

import (
	"bytes"
	"errors"

	"sequins/blocks"
)

// route is what a request asks for.
type route uint8

const (
	routeKey    route = iota // /<db>/<key>
	routeNode                // /
	routeDB                  // /<db>, /<db>/
	routeHealth              // /healthz
	routeLive                // /livez
	routeReady               // /readyz
)

// routes are what the routes are called in traces.
var routes = [...]string{
	routeKey: "/{db}/{key}", routeNode: "/", routeDB: "/{db}",
	routeHealth: "/healthz", routeLive: "/livez", routeReady: "/readyz",
}

// isProbe reports whether it is what balancers and monitoring ask.
func (r route) isProbe() bool { return r == routeHealth || r == routeLive || r == routeReady }

// target is a request target, taken apart. The slices point into the URI or
// into the buffer given to parseTarget.
type target struct {
	route route
	path  []byte // as it came
	db    []byte // decoded
	key   []byte // as bytes, decoded
	query []byte // what follows the first '?', as it came
}

var (
	errTarget     = errors.New("the request target is neither a path nor a URL")
	errEscape     = errors.New("bad percent escape in the request target: % must be followed by two hex digits")
	errKeyTooLong = errors.New("the key is longer than 65536 bytes")
)

// parseTarget takes a request target apart, as it stands in the request line:
// nothing has been cleaned, joined or decoded before. The key is everything
// between "/<db>/" and the first '?', percent-decoded once: "//", "..", "+",
// '#' and bytes above 127 are bytes of the key like others. What had to be
// decoded is appended to buf, which is returned for the next request.
func parseTarget(uri, buf []byte) (target, []byte, error) {
	path, query, err := splitTarget(uri)
	if err != nil {
		return target{}, buf, err
	}
	t := target{path: path, query: query}
	db, key, hasKey := bytes.Cut(path[1:], slash)
	buf = buf[:0]
	if t.db, buf, err = unescape(db, buf); err != nil {
		return target{}, buf, err
	}
	if len(key) == 0 {
		t.route = bareRoute(t.db, hasKey)
		return t, buf, nil
	}
	if t.key, buf, err = unescape(key, buf); err != nil {
		return target{}, buf, err
	}
	if len(t.key) > blocks.MaxKey {
		return target{}, buf, errKeyTooLong
	}
	return t, buf, nil
}

var slash = []byte{'/'}

// splitTarget gives the path, which begins with '/', and the query of a target
// in origin form (/path?query) or in absolute form (http://host/path?query).
func splitTarget(uri []byte) (path, query []byte, err error) {
	if len(uri) == 0 {
		return nil, nil, errTarget
	}
	if uri[0] != '/' {
		_, rest, ok := bytes.Cut(uri, []byte("://"))
		if !ok {
			return nil, nil, errTarget
		}
		i := bytes.IndexAny(rest, "/?")
		if i < 0 {
			return slash, nil, nil
		}
		uri = rest[i:]
	}
	path, query, _ = bytes.Cut(uri, []byte{'?'})
	if len(path) == 0 {
		path = slash
	}
	return path, query, nil
}

// bareRoute is the route of a path without a key.
func bareRoute(db []byte, trailingSlash bool) route {
	switch {
	case trailingSlash:
		return routeDB
	case len(db) == 0:
		return routeNode
	case string(db) == "healthz":
		return routeHealth
	case string(db) == "livez":
		return routeLive
	case string(db) == "readyz":
		return routeReady
	}
	return routeDB
}

// unescape decodes %xx once. What holds no escape is returned as it is,
// anything else is decoded to the end of buf.
func unescape(s, buf []byte) (decoded, newBuf []byte, err error) {
	i := bytes.IndexByte(s, '%')
	if i < 0 {
		return s, buf, nil
	}
	start := len(buf)
	for i >= 0 {
		if len(s) < i+3 || unhex[s[i+1]] > 15 || unhex[s[i+2]] > 15 {
			return nil, buf[:start], errEscape
		}
		buf = append(buf, s[:i]...)
		buf = append(buf, unhex[s[i+1]]<<4|unhex[s[i+2]])
		s = s[i+3:]
		i = bytes.IndexByte(s, '%')
	}
	buf = append(buf, s...)
	return buf[start:], buf, nil
}

// unhex is the value of a hexadecimal digit, 255 for any other byte.
var unhex = func() (t [256]byte) {
	for i := range t {
		t[i] = 255
	}
	for i := range byte(10) {
		t['0'+i] = i
	}
	for i := range byte(6) {
		t['a'+i], t['A'+i] = 10+i, 10+i
	}
	return t
}()

// proxyOf finds the value of the proxy parameter in a query: the version that
// another node asks for, or "true". Empty means that the request comes from a
// client. Any other parameter is ignored.
func proxyOf(query []byte) ([]byte, error) {
	for len(query) > 0 {
		var pair []byte
		pair, query, _ = bytes.Cut(query, []byte{'&'})
		value, ok := bytes.CutPrefix(pair, []byte("proxy="))
		if !ok || len(value) == 0 {
			continue
		}
		value, _, err := unescape(value, nil)
		return value, err
	}
	return nil, nil
}

// fromPeer reports whether a request with this query comes from another node. One
// that cannot be read does not come from a client, either.
func fromPeer(query []byte) bool {
	asked, err := proxyOf(query)
	return err != nil || len(asked) > 0
}

// explains reports whether a query asks for an explanation: "explain" is one of its
// parameters, whatever its value.
func explains(query []byte) bool {
	for len(query) > 0 {
		var pair []byte
		pair, query, _ = bytes.Cut(query, []byte{'&'})
		if name, _, _ := bytes.Cut(pair, []byte{'='}); string(name) == "explain" {
			return true
		}
	}
	return false
}
