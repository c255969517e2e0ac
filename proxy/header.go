package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"math"

	"sequins/internal/http1"
	"sequins/internal/wire"
)

// Header holds the header fields of an answer that are used. A field that was not sent is nil. The
// slices are valid until the answer's body is read or closed.
type Header struct {
	Version      []byte // X-Sequins-Version
	Content      []byte // wire.Content: the content that the peer has answered from
	ContentType  []byte
	ETag         []byte
	LastModified []byte
	ContentRange []byte
	AcceptRanges []byte
}

// header is a parsed answer header.
type header struct {
	Header
	status  int
	length  int64 // Content-Length, -1 if there is none
	closing bool  // the connection ends with this answer
}

var (
	errStatusLine = errors.New("malformed status line")
	errField      = errors.New("malformed header field")
	errLength     = errors.New("malformed or repeated Content-Length")
)

// parseHeader parses a complete header, including the empty line at its end. It is stricter than
// HTTP requires, because peers are sequins and deviations indicate errors. The result points into
// b.
func parseHeader(b []byte) (header, error) {
	h := header{length: -1}
	line, rest := cutLine(b)
	if err := h.statusLine(line); err != nil {
		return h, err
	}
	chunked := false
	for {
		line, rest = cutLine(rest)
		if len(line) == 0 {
			break
		}
		colon := bytes.IndexByte(line, ':')
		if colon < 0 || !http1.IsToken(line[:colon]) {
			return h, fmt.Errorf("%w: %.40q", errField, line)
		}
		if http1.HasControl(line[colon+1:]) {
			return h, fmt.Errorf("%w: %.40s has a control character", errField, line[:colon])
		}
		if err := h.field(line[:colon], http1.Trim(line[colon+1:]), &chunked); err != nil {
			return h, err
		}
	}
	if chunked { // overrides any Content-Length
		h.length, h.closing = -1, true
	}
	return h, nil
}

// cutLine splits off the first line, which ends with LF or CR LF.
func cutLine(b []byte) (line, rest []byte) {
	n := bytes.IndexByte(b, '\n')
	if n < 0 {
		return nil, nil
	}
	line, rest = b[:n], b[n+1:]
	if n > 0 && line[n-1] == '\r' {
		line = line[:n-1]
	}
	return line, rest
}

// statusLine parses "HTTP/1.1 200 OK".
func (h *header) statusLine(line []byte) error {
	const proto = "HTTP/1."
	if len(line) < len(proto)+5 || string(line[:len(proto)]) != proto || line[len(proto)+1] != ' ' {
		return fmt.Errorf("%w: %.40q", errStatusLine, line)
	}
	minor, code, rest := line[len(proto)], line[len(proto)+2:len(proto)+5], line[len(proto)+5:]
	for _, c := range code {
		h.status = 10*h.status + int(c-'0')
		if c < '0' || c > '9' {
			return fmt.Errorf("%w: %.40q", errStatusLine, line)
		}
	}
	switch {
	case minor != '0' && minor != '1', len(rest) > 0 && rest[0] != ' ', h.status < 100:
		return fmt.Errorf("%w: %.40q", errStatusLine, line)
	case h.status < 200:
		return errors.New("an interim answer that was not asked for")
	}
	h.closing = minor == '0'
	return nil
}

// field stores a header field. Of a repeated field the first one counts.
func (h *header) field(name, value []byte, chunked *bool) error {
	var keep *[]byte
	is := func(field string) bool { return len(name) == len(field) && bytes.EqualFold(name, []byte(field)) }
	switch {
	case is("Content-Length"):
		return h.contentLength(value)
	case is("Connection"):
		h.closing = h.closing || http1.HasToken(value, "close")
	case is("Transfer-Encoding"):
		if *chunked || !bytes.EqualFold(value, []byte("chunked")) {
			return errors.New("a Transfer-Encoding that is not chunked, or repeated")
		}
		*chunked = true
	case is(wire.Version):
		keep = &h.Version
	case is(wire.Content):
		keep = &h.Content
	case is("Content-Type"):
		keep = &h.ContentType
	case is("ETag"):
		keep = &h.ETag
	case is("Last-Modified"):
		keep = &h.LastModified
	case is("Content-Range"):
		keep = &h.ContentRange
	case is("Accept-Ranges"):
		keep = &h.AcceptRanges
	}
	if keep != nil && *keep == nil {
		*keep = value
	}
	return nil
}

// contentLength parses a Content-Length. A second one is an error.
func (h *header) contentLength(value []byte) error {
	if h.length >= 0 || len(value) == 0 {
		return errLength
	}
	h.length = 0
	for _, c := range value {
		d := int64(c - '0')
		if c < '0' || c > '9' || h.length > (math.MaxInt64-d)/10 {
			return errLength
		}
		h.length = 10*h.length + d
	}
	return nil
}
