package server

import (
	"bytes"
	"errors"
	"net/http"
	"slices"

	"sequins/blocks"
	"sequins/internal/http1"
	"sequins/internal/wire"
)

// All keys that a block can have can be asked for, and no others.
var _ = [1]struct{}{}[wire.MaxKey-blocks.MaxKey]

// route is the kind of resource that a request asks for.
type route uint8

const (
	routeKey     route = iota // /<db>/<key>
	routeNode                 // /
	routeDB                   // /<db>, /<db>/
	routeHealth               // /healthz
	routeLive                 // /livez
	routeReady                // /readyz
	routeRunbook              // /-/runbook
	routeAPI                  // /-/openapi.yaml
)

var routes = [...]string{
	routeKey: "/{db}/{key}", routeNode: "/", routeDB: "/{db}",
	routeHealth: "/healthz", routeLive: "/livez", routeReady: "/readyz", routeRunbook: runbookPath, routeAPI: apiPath,
}

// The paths of what the node has beside dbs and their status. No db has a name that begins with "-".
const (
	runbookPath = "/-/runbook"
	apiPath     = "/-/openapi.yaml"
)

// isProbe reports whether load balancers and monitoring request the route.
func (r route) isProbe() bool { return r == routeHealth || r == routeLive || r == routeReady }

// target is a parsed request target. The slices point into the URI or into the buffer given to parseTarget.
type target struct {
	route route
	path  []byte // as received
	db    []byte // decoded
	key   []byte // decoded bytes
	query []byte // as received, without the '?'
	proxy []byte // the version that another node requests, or "true"; empty for requests of clients
}

var (
	errTarget     = errors.New("the request target is neither a path nor a URL")
	errKeyTooLong = errors.New("the key is longer than 65536 bytes")
)

// parseTarget parses a request target as received, not cleaned or decoded. The key is everything between
// "/<db>/" and the first '?', percent-decoded once: "//", "..", "+", '#' and bytes above 127 are ordinary
// bytes of the key. Decoded parts are appended to buf, which is returned for the next request.
func parseTarget(uri, buf []byte) (target, []byte, error) {
	path, query, err := splitTarget(uri)
	if err != nil {
		return target{}, buf, err
	}
	t := target{path: path, query: query}
	switch string(path) {
	case runbookPath:
		t.route = routeRunbook
		return t, buf, nil
	case apiPath:
		t.route = routeAPI
		return t, buf, nil
	}
	db, key, hasKey := bytes.Cut(path[1:], slash)
	buf = buf[:0]
	if t.db, buf, err = http1.Unescape(db, buf); err != nil {
		return target{}, buf, err
	}
	if len(key) == 0 {
		t.route = routeDB
		if bare, ok := bareRoutes[string(t.db)]; ok && !hasKey {
			t.route = bare
		}
	}
	if !t.route.isProbe() {
		if t.proxy, err = nameParameter(query, "proxy"); err != nil {
			return target{}, buf, err
		}
	}
	if len(key) == 0 {
		return t, buf, nil
	}
	if t.key, buf, err = http1.Unescape(key, buf); err != nil {
		return target{}, buf, err
	}
	if len(t.key) > wire.MaxKey {
		return target{}, buf, errKeyTooLong
	}
	return t, buf, nil
}

var slash = []byte{'/'}

// splitTarget returns the path, which begins with '/', and the query of a target in origin form (/path?query)
// or in absolute form (http://host/path?query).
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

// bareRoutes are the routes of paths without a second slash that are not the status of a db.
var bareRoutes = map[string]route{"": routeNode, "healthz": routeHealth, "livez": routeLive, "readyz": routeReady}

// operation is what a request asks of its target. Of the parameters of a db, those of the lesser operation count.
type operation uint8

const (
	opGet        operation = iota // the value of a key; also of malformed targets
	opExplain                     // how a key is looked up
	opScan                        // an ordered read: the records of a range, or their number
	opBatch                       // several keys
	opPartitions                  // the map from keys to nodes
	opBlocks                      // a block, or what is here, for another node
	opDiff                        // the differences between two versions
	opUnknown                     // an unknown parameter: it was meant to read
	opPage                        // a page, a probe or the status of a db
)

// operation returns the operation of a request with a method, and the name of the parameter of opUnknown.
func (t *target) operation(method string) (least operation, unknown []byte) {
	least = opPage
	switch {
	case t.route == routeKey:
		least = opGet
	case t.route != routeDB:
		return opPage, nil
	case method == http.MethodPost:
		return opBatch, nil
	}
	for p := range http1.Parameters(t.query) { //nolint:errcheck // it is for who needs the value
		if t.route == routeKey {
			if string(p.Name) == "explain" {
				return opExplain, nil
			}
		} else if op := operationOf(p.Name, len(t.proxy) > 0); op < least {
			least, unknown = op, p.Name
		}
	}
	return least, unknown
}

// operationOf returns the operation of a parameter of a db, for a client or for another node. Without opUnknown, a mistyped
// parameter of a read would get the status.
func operationOf(parameter []byte, internal bool) operation {
	switch string(parameter) {
	case "proxy":
		return opPage
	case "key":
		return opBatch
	case "partitions":
		return opPartitions
	case "diff":
		return opDiff
	}
	switch {
	case slices.Contains(scanParameters, string(parameter)):
		return opScan
	case internal && (string(parameter) == "blocks" || string(parameter) == "block"):
		return opBlocks
	case internal:
		return opPage
	}
	return opUnknown
}
