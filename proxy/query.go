package proxy

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strconv"

	"sequins/internal/http1"
	"sequins/internal/wire"
	"sequins/observe/tracing"
)

// maxStageScale limits by how much a stage is longer: a node that hangs is passed over soon, however much it was asked for.
const maxStageScale = 16

// Query is a request to peers.
type Query struct {
	// Peers are the nodes (host:port) to ask, in any order. Fetch does not modify it.
	Peers []string
	// Head sends HEAD instead of GET.
	Head bool
	// Path is sent unchanged: it must begin with '/' and be escaped.
	Path []byte
	// Version is the requested version, and Content the code of the requested content of it, see wire.Content, or empty for any; answers from others
	// are rejected.
	Version string
	Content []byte
	// Params are further parameters of the request's query, escaped: name=value, separated by '&'.
	Params []byte
	// Body makes the request a POST with this body, of application/octet-stream. It must not change until
	// Fetch and all attempts that it started have ended, so it must not be reused.
	Body []byte
	// Scale multiplies the timeouts, for requests that cost a peer as much as Scale requests for single keys; 0 means 1.
	// The timeout of a stage is multiplied by maxStageScale at most.
	Scale int
	// Prompt says that the caller reads the body of the answer at once, so that any pause is the peer's: Read then fails
	// if it sends nothing for a second.
	Prompt bool
	// Fields are header fields of the request.
	Fields []Field
	// Trace is the parent of the spans of attempts; it may be nil.
	Trace *tracing.Request
}

// Field is a header field of a request.
type Field struct {
	Name  string
	Value []byte
}

// Answer is the answer of a peer. Its status is 200, 206, 304, 404, 412, 413 or 416.
type Answer struct {
	Peer   string
	Status int
	// Length is the length of the body, or for HEAD the length that GET would return. It is -1 if
	// unknown, which is never the case for 200 and 206.
	Length int64
	// Header is valid until Body is read or closed.
	Header Header
	// Value is the complete body if it has at most 64 KiB, nil otherwise. It is valid until Body is
	// closed.
	Value []byte
	// Body has Length bytes, or none for HEAD and 304. The caller must close it and must not use
	// the answer afterwards; a second Close does nothing. Read fails if the peer sends nothing for
	// ten seconds: see Query.Prompt.
	Body io.ReadCloser
}

var errQuery = errors.New("a path or header field with bytes that cannot be sent")

// check rejects queries that would be sent as a different request, or as two.
func (q *Query) check() error {
	if len(q.Path) == 0 || q.Path[0] != '/' || bytes.IndexByte(q.Path, '?') >= 0 || !isTarget(q.Path) || !isTarget(q.Params) ||
		http1.HasControl(q.Content) || slices.ContainsFunc(q.Fields, func(f Field) bool { return http1.HasControl(f.Value) }) {
		return errQuery
	}
	return nil
}

// isTarget reports whether b can be part of a request target.
func isTarget(b []byte) bool {
	for _, c := range b {
		if c <= ' ' || c == 0x7f {
			return false
		}
	}
	return true
}

func (q *Query) method() string {
	switch {
	case q.Body != nil:
		return "POST"
	case q.Head:
		return "HEAD"
	}
	return "GET"
}

// appendTo appends the part of the request that is the same for all peers. The attempt's span, Host
// and the final empty line are missing.
func (q *Query) appendTo(b []byte) []byte {
	b = append(b, q.method()...)
	b = append(b, ' ')
	b = append(b, q.Path...)
	b = append(b, "?proxy="...) // with '+' escaped, as it can be read as a space
	b = http1.AppendEscaped(b, q.Version, "._-=,@:")
	if len(q.Params) > 0 {
		b = append(append(b, '&'), q.Params...)
	}
	b = append(b, " HTTP/1.1\r\n"...)
	if q.Body != nil {
		b = append(b, "Content-Type: "+wire.Bytes+"\r\nContent-Length: "...)
		b = append(strconv.AppendInt(b, int64(len(q.Body)), 10), "\r\n"...)
	}
	for _, f := range q.Fields {
		b = appendField(b, f.Name, f.Value)
	}
	if len(q.Content) > 0 {
		b = appendField(b, wire.Content, q.Content)
	}
	return b
}

func appendField(b []byte, name string, value []byte) []byte {
	b = append(append(b, name...), ": "...)
	return append(append(b, value...), "\r\n"...)
}
