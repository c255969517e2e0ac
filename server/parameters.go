package server

import (
	"bytes"
	"fmt"

	"sequins/internal/http1"
	"sequins/internal/names"
)

// nameParameter returns the name that a parameter has as its value, empty if it has none. A '+' that was sent without escape is one of the name, as
// names have no spaces.
func nameParameter(query []byte, parameter string) (name []byte, err error) {
	for p, err := range http1.Parameters(query) {
		switch {
		case string(p.Name) != parameter:
			continue
		case err != nil:
			return nil, err
		case len(p.Value) > names.Max:
			return nil, fmt.Errorf("the parameter %s is longer than %d bytes", parameter, names.Max)
		case len(name) > 0 && len(p.Value) > 0:
			return nil, fmt.Errorf("the parameter %s is repeated", parameter)
		case len(p.Value) > 0:
			if name = p.Value; bytes.IndexByte(name, ' ') >= 0 {
				name = bytes.ReplaceAll(name, []byte{' '}, []byte{'+'})
			}
		}
	}
	return name, nil
}

// dbParameters are the names of the parameters of GET /<db> for clients.
var dbParameters = []string{"key", "prefix", "start", "end", "limit", "after", "keys_only", "count", "partitions", "diff"}
