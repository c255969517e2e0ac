package http1

import (
	"bytes"
	"fmt"
	"iter"
)

// A Parameter is one parameter of a query, decoded.
type Parameter struct {
	Name, Value []byte
	Valued      bool // there is a '=' behind the name
}

// Parameters iterates over the parameters of a query. They are decoded as HTML forms are, because all encoders of queries agree on that: %xx is a
// byte, and + a space. The error of a parameter wraps ErrEscape; its name is as received if that cannot be decoded.
func Parameters(query []byte) iter.Seq2[Parameter, error] {
	return func(yield func(Parameter, error) bool) {
		for pair := range bytes.SplitSeq(query, []byte{'&'}) {
			if len(pair) > 0 && !yield(parseParameter(pair)) {
				return
			}
		}
	}
}

func parseParameter(pair []byte) (p Parameter, err error) {
	var name, value []byte
	name, value, p.Valued = bytes.Cut(pair, []byte{'='})
	if p.Name, err = unescapeForm(name); err != nil {
		p.Name = name
	} else {
		p.Value, err = unescapeForm(value)
	}
	if err != nil {
		err = fmt.Errorf("the parameter %.40q: %w", p.Name, err)
	}
	return p, err
}

func unescapeForm(s []byte) ([]byte, error) {
	if bytes.IndexByte(s, '+') >= 0 {
		s = bytes.ReplaceAll(s, []byte{'+'}, []byte{' '})
	}
	s, _, err := Unescape(s, nil)
	return s, err
}
