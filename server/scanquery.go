package server

import (
	"errors"
	"fmt"
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
	seen  [len(scanParameters)]bool
}

// scanParameters are the names of the parameters of an ordered read.
var scanParameters = [...]string{"prefix", "start", "end", "limit", "after", "keys_only", "count", "proxy", "page"}

const (
	scanLimit = 3 + iota
	scanAfter
	scanKeysOnly
	scanCount
	scanProxy
	scanPage
)

// maxBound is the longest bound of a range in bytes, that of the least key behind the longest one.
const maxBound = blocks.MaxKey + 1

var (
	errCountAlone  = errors.New("count is combined with prefix, start and end only")
	errPeerScan    = errors.New("proxy and page are for the nodes of this cluster: they come together, and without others")
	errScanLimit   = errors.New("limit must be a number from 1 to 9223372036854775807")
	errEmptyCursor = errors.New("after is empty: leave it out to begin at the start of the range")
)

// scanParameter returns the index of a name in scanParameters, or -1.
func scanParameter(name []byte) int {
	for i, known := range scanParameters {
		if string(name) == known {
			return i
		}
	}
	return -1
}

// parseScan parses the query of an ordered read. Unlike other requests it has no unknown parameters: a mistyped limit
// would send the whole database.
func parseScan(t *target) (q scanQuery, err error) {
	for p, err := range http1.Parameters(t.query) {
		i := scanParameter(p.Name)
		switch {
		case i < 0:
			return q, fmt.Errorf("unknown parameter %.40q: an ordered read has prefix, start, end, limit, after, keys_only and count", p.Name)
		case err != nil:
			return q, err
		case q.seen[i]:
			return q, fmt.Errorf("the parameter %s is repeated", p.Name)
		}
		q.seen[i] = true
		if err := q.set(i, p.Value, p.Valued); err != nil {
			return q, err
		}
	}
	return q, q.check(t)
}

// set sets a parameter to its decoded value.
func (q *scanQuery) set(i int, value []byte, valued bool) (err error) {
	switch i {
	case scanLimit:
		q.Limit, err = parseLimit(value)
	case scanAfter:
		if q.After = value; len(value) == 0 {
			err = errEmptyCursor
		}
	case scanKeysOnly:
		q.KeysOnly, err = parseFlag(i, value, valued)
	case scanCount:
		q.count, err = parseFlag(i, value, valued)
	case scanProxy: // target.proxy
	case scanPage:
		q.page, err = reads.ParsePageRequest(value)
	default:
		if len(value) > maxBound {
			return fmt.Errorf("%s is longer than %d bytes", scanParameters[i], maxBound)
		}
		*[]*[]byte{&q.Prefix, &q.Start, &q.End}[i] = value
	}
	return err
}

// check returns an error for parameters that do not go together.
func (q *scanQuery) check(t *target) error {
	n := 0
	for _, seen := range q.seen {
		if seen {
			n++
		}
	}
	switch {
	case q.seen[scanProxy] != q.seen[scanPage], q.seen[scanPage] && (n > 2 || len(t.proxy) == 0):
		return errPeerScan
	case q.count && (q.seen[scanLimit] || q.seen[scanAfter] || q.seen[scanKeysOnly]):
		return errCountAlone
	}
	return nil
}

// parseLimit parses a decimal number without a sign.
func parseLimit(value []byte) (int64, error) {
	for _, c := range value {
		if c < '0' || c > '9' {
			return 0, errScanLimit
		}
	}
	n, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil || n < 1 {
		return 0, errScanLimit
	}
	return n, nil
}

// parseFlag parses a parameter that is set by its presence.
func parseFlag(i int, value []byte, valued bool) (bool, error) {
	if valued && len(value) > 0 && string(value) != "1" && string(value) != "true" {
		return false, fmt.Errorf("%s has no value: leave it out to turn it off", scanParameters[i])
	}
	return true, nil
}
