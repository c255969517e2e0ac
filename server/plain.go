package server

import (
	"bytes"

	"sequins/internal/http1"
	"sequins/internal/wire"
)

// asked holds the header fields of a request that are used, independent of the front end.
type asked struct {
	uri           []byte // as received
	authorization []byte
	traceparent   []byte
	tracestate    []byte
	content       []byte // wire.Content
	secret        []byte // wire.Secret
	atLeast       []byte // wire.AtLeast
	exact         []byte // wire.Version
	accept        []byte
	encoding      []byte // Accept-Encoding
	origin        []byte
}

// plainParser parses the header of a plain request: a GET of HTTP/1.1 for one key, without parameters other
// than proxy, without condition, range, body or Connection field other than keep-alive. Most requests are
// plain. An invalid request is not plain.
type plainParser struct {
	asked
	hosts int
}

// parsePlain parses a complete header and reports whether it is that of a plain request. It accepts neither
// folded lines nor line ends without CR.
func parsePlain(b []byte) (a asked, ok bool) {
	line, b, ok := cutLine(b)
	const method, proto = "GET /", " HTTP/1.1"
	end := len(line) - len(proto)
	if !ok || end < len(method) || string(line[:len(method)]) != method || string(line[end:]) != proto {
		return a, false
	}
	p := plainParser{asked: asked{uri: line[len(method)-1 : end]}}
	for _, c := range p.uri {
		if c <= ' ' || c == 0x7f {
			return a, false
		}
	}
	for {
		if line, b, ok = cutLine(b); !ok {
			return a, false
		}
		if len(line) == 0 {
			return p.asked, p.hosts == 1 && len(b) == 0
		}
		name, value, ok := bytes.Cut(line, []byte{':'})
		if value = http1.Trim(value); !ok || !http1.IsToken(name) || http1.HasControl(value) || !p.field(name, value) {
			return a, false
		}
	}
}

// isPlain reports whether the target is a key, without parameters or with only proxy.
func (t *target) isPlain() bool {
	return t.route == routeKey && (len(t.query) == 0 || len(t.proxy) > 0 && bytes.IndexByte(t.query, '&') < 0)
}

// cutLine splits off the first line, which ends with CR LF.
func cutLine(b []byte) (line, rest []byte, ok bool) {
	n := bytes.IndexByte(b, '\n')
	if n < 1 || b[n-1] != '\r' {
		return nil, nil, false
	}
	return b[:n-1], b[n+1:], true
}

// field stores the fields that are used. Other fields that affect the answer or the framing make the request
// not plain.
func (p *plainParser) field(name, value []byte) bool {
	if len(name) > 3 && is(name[:3], "If-") {
		return false
	}
	switch len(name) {
	case len("Host"):
		if is(name, "Host") {
			p.hosts++
			return isPlainHost(value)
		}
	case len("Range"):
		return !is(name, "Range")
	case len("Accept"):
		switch {
		case is(name, "Accept"):
			return optional(&p.accept, value)
		case is(name, "Origin"):
			return optional(&p.origin, value)
		}
		return !is(name, "Expect")
	case len("Trailer"):
		return !is(name, "Trailer")
	case len("Connection"):
		if is(name, wire.Tracestate) {
			return once(&p.tracestate, value)
		}
		return !is(name, "Connection") || is(value, "keep-alive")
	case len(wire.Traceparent):
		if is(name, wire.Traceparent) {
			return once(&p.traceparent, value)
		}
	case len("Authorization"):
		if is(name, "Authorization") {
			return once(&p.authorization, value)
		}
	case len("Content-Length"):
		return !is(name, "Content-Length")
	case len("Accept-Encoding"):
		if is(name, "Accept-Encoding") {
			return optional(&p.encoding, value)
		}
	case len(wire.AtLeast):
		if is(name, wire.AtLeast) {
			return once(&p.atLeast, value)
		}
	case len("Transfer-Encoding"):
		if is(name, wire.Secret) {
			return once(&p.secret, value)
		}
		if is(name, wire.Version) {
			return once(&p.exact, value)
		}
		if is(name, wire.Content) {
			return once(&p.content, value)
		}
		return !is(name, "Transfer-Encoding")
	}
	return true
}

func is(name []byte, other string) bool {
	return len(name) == len(other) && bytes.EqualFold(name, []byte(other))
}

// once stores the value of a field that must not be repeated or empty.
func once(to *[]byte, value []byte) bool { return len(value) > 0 && optional(to, value) }

// optional stores the value of a field that must not be repeated. An empty value is not nil.
func optional(to *[]byte, value []byte) bool {
	again := *to != nil
	*to = value
	return !again
}

// isPlainHost reports whether a host has only bytes that names, IPv4 addresses and ports have.
func isPlainHost(host []byte) bool {
	for _, c := range host {
		if c != '-' && c != '.' && c != ':' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
			return false
		}
	}
	return len(host) > 0
}
