package server

import (
	"bytes"
	"fmt"
	"strings"

	"sequins/internal/nearest"
)

// dbParameters are the names of the parameters of GET /<db> for clients.
var dbParameters = []string{"key", "prefix", "start", "end", "limit", "after", "keys_only", "count", "partitions", "diff"}

// strayParameter returns the name of the first parameter of a db's status page, which has none but proxy. Without it, a mistyped
// parameter of a read would get the status.
func (t *target) strayParameter() (name []byte, found bool) {
	if t.route != routeDB || len(t.query) == 0 || hasParameter(t.query, "proxy") {
		return nil, false
	}
	for pair := range bytes.SplitSeq(t.query, []byte{'&'}) {
		if name, _, _ := bytes.Cut(pair, []byte{'='}); len(pair) > 0 {
			return name, true
		}
	}
	return nil, false
}

// strayText says what is wrong with a parameter that the status page of a db does not have.
func strayText(name []byte) string {
	switch string(name) {
	case "list":
		return "the parameter list goes with diff"
	case "explain":
		return "the parameter explain goes with a key: /<db>/<key>?explain"
	}
	meant := nearest.Of(string(name), dbParameters)
	if meant != "" {
		meant = " did you mean " + meant + "?"
	}
	return fmt.Sprintf("unknown parameter %.40q:%s a read of a database has one of %s; its status has none", name, meant, strings.Join(dbParameters, ", "))
}
