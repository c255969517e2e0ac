package server

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"sequins/blocks"
	"sequins/internal/http1"
	"sequins/reads"
)

// scanQuery is the query of an ordered read, GET /<db>?prefix=P&start=A&end=B&limit=N&after=CURSOR&keys_only or
// GET /<db>?count. Requests of other nodes have proxy and page instead.
type scanQuery struct {
	reads.Range
	count bool
	page  *reads.PageRequest
}

// scanParameters are the names of the parameters of an ordered read, beside proxy.
var scanParameters = []string{"prefix", "start", "end", "limit", "after", "keys_only", "count", "page"}

// maxBound is the longest bound of a range in bytes, that of the least key behind the longest one.
const maxBound = blocks.MaxKey + 1

// parseScan parses the query of an ordered read. Unlike other requests it has no unknown parameters: a mistyped limit
// would send the whole database.
func parseScan(t *target) (q scanQuery, err error) {
	seen := make(map[string]bool)
	for p, err := range http1.Parameters(t.query) {
		name := string(p.Name)
		switch {
		case name != "proxy" && !slices.Contains(scanParameters, name):
			return q, fmt.Errorf("unknown parameter %.40q: an ordered read has prefix, start, end, limit, after, keys_only and count", p.Name)
		case err != nil:
			return q, err
		case seen[name]:
			return q, fmt.Errorf("the parameter %s is repeated", p.Name)
		}
		seen[name] = true
		if err := q.set(name, p); err != nil {
			return q, err
		}
	}
	switch {
	case seen["proxy"] != seen["page"], seen["page"] && (len(seen) > 2 || len(t.proxy) == 0):
		return q, errors.New("proxy and page are for the nodes of this cluster: they come together, and without others")
	case q.count && (seen["limit"] || seen["after"] || seen["keys_only"]):
		return q, errors.New("count is combined with prefix, start and end only")
	}
	return q, nil
}

// set sets a parameter to its decoded value.
func (q *scanQuery) set(name string, p http1.Parameter) (err error) {
	switch name {
	case "limit":
		n, malformed := strconv.ParseUint(string(p.Value), 10, 63) // has no sign
		if malformed != nil || n < 1 {
			return errors.New("limit must be a number from 1 to 9223372036854775807")
		}
		q.Limit = int64(n)
	case "after":
		if q.After = p.Value; len(q.After) == 0 {
			err = errors.New("after is empty: leave it out to begin at the start of the range")
		}
	case "keys_only":
		q.KeysOnly, err = parseFlag(p)
	case "count":
		q.count, err = parseFlag(p)
	case "page":
		q.page, err = reads.ParsePageRequest(p.Value)
	case "prefix":
		q.Prefix, err = parseBound(p)
	case "start":
		q.Start, err = parseBound(p)
	case "end":
		q.End, err = parseBound(p)
	}
	return err
}

func parseBound(p http1.Parameter) ([]byte, error) {
	if len(p.Value) > maxBound {
		return nil, fmt.Errorf("%s is longer than %d bytes", p.Name, maxBound)
	}
	return p.Value, nil
}

func parseFlag(p http1.Parameter) (bool, error) {
	if v := string(p.Value); v != "" && v != "1" && v != "true" {
		return false, fmt.Errorf("%s has no value: leave it out to turn it off", p.Name)
	}
	return true, nil
}
