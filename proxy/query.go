package proxy

import (
	"errors"
	"io"

	"sequins/internal/http1"
	"sequins/tracing"
)

// Query is what peers are asked.
type Query struct {
	// Peers are the nodes (host:port) that may be asked, in any order. Fetch
	// does not change them.
	Peers []string
	// Head asks with HEAD instead of GET.
	Head bool
	// Path is sent as it is: it begins with '/', and is escaped where it has to be.
	Path []byte
	// Version is what they are asked for, and what an answer has to be from.
	Version string
	// Fields go with the request.
	Fields []Field
	// Trace is the span that those of the attempts belong to; nil: there are none.
	Trace *tracing.Request
}

// Field is one line of a request's header.
type Field struct {
	Name  string
	Value []byte
}

// Answer is what a peer has said: 200, 206, 304, 404, 412 or 416.
type Answer struct {
	Peer   string
	Status int
	// Length is that of the body; for HEAD, of the one that GET would get. It is
	// -1 where the peer did not say it, which it always does with 200 and 206.
	Length int64
	// Header is valid until Body is read or closed.
	Header Header
	// Value is the body if that is here whole, as one of up to 64 KiB is; nil
	// otherwise. It is valid until Body is closed.
	Value []byte
	// Body has Length bytes, none for HEAD and 304. It has to be closed, which
	// is safe to do twice; nothing of the answer is to be used after that. A
	// Read fails if the peer sends nothing for ten seconds.
	Body io.ReadCloser
}

var errQuery = errors.New("a path or header field with bytes that cannot be sent")

// check refuses what would make another request, or two, of a query.
func (q *Query) check() error {
	if len(q.Path) == 0 || q.Path[0] != '/' {
		return errQuery
	}
	for _, c := range q.Path {
		if c <= ' ' || c == 0x7f || c == '?' {
			return errQuery
		}
	}
	for _, f := range q.Fields {
		if http1.HasControl(f.Value) {
			return errQuery
		}
	}
	return nil
}

func (q *Query) method() string {
	if q.Head {
		return "HEAD"
	}
	return "GET"
}

// appendTo renders the query as far as it is the same for all peers: what is
// missing is the span of the attempt, Host, and the end.
func (q *Query) appendTo(b []byte) []byte {
	b = append(b, q.method()...)
	b = append(b, ' ')
	b = append(b, q.Path...)
	b = append(b, "?proxy="...)
	b = appendEscaped(b, q.Version)
	b = append(b, " HTTP/1.1\r\n"...)
	for _, f := range q.Fields {
		b = append(b, f.Name...)
		b = append(b, ": "...)
		b = append(b, f.Value...)
		b = append(b, "\r\n"...)
	}
	return b
}

// appendEscaped escapes what is none of the characters that names of versions
// are made of.
func appendEscaped(b []byte, s string) []byte {
	const hex = "0123456789ABCDEF"
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '_', c == '-':
			b = append(b, c)
		default:
			b = append(b, '%', hex[c>>4], hex[c&15])
		}
	}
	return b
}
