package server

import (
	"bytes"

	"sequins/internal/http1"
)

// plain is what matters of the usual request: a GET of HTTP/1.1 for one path, with no
// condition, no range, no body and nothing to be said about the connection. conn has
// it answered where it has arrived, without fasthttp, which spends as much on taking
// such a request apart and on putting its answer together as all the rest takes.
// The answer is the same to the byte. fasthttp gets all others, those that are wrong
// among them, and those for a db or a version that is not here, for a large value of a
// block that is, and for one that cannot be read. See atonce.go.
type plain struct {
	uri           []byte
	authorization []byte
	traceparent   []byte
	tracestate    []byte
	plan          []byte // see keyPlan
	secret        []byte
	hosts         int
}

// parsePlain takes a whole header apart, if it is that of a plain request. It knows
// neither folded lines nor line ends without CR.
func parsePlain(b []byte) (p plain, ok bool) {
	line, b, ok := cutLine(b)
	const method, proto = "GET /", " HTTP/1.1"
	end := len(line) - len(proto)
	if !ok || end < len(method) || string(line[:len(method)]) != method || string(line[end:]) != proto {
		return p, false
	}
	p.uri = line[len(method)-1 : end]
	for _, c := range p.uri {
		if c <= ' ' || c == 0x7f {
			return p, false
		}
	}
	for {
		if line, b, ok = cutLine(b); !ok {
			return p, false
		}
		if len(line) == 0 {
			return p, p.hosts == 1 && len(b) == 0
		}
		if !p.line(line) {
			return p, false
		}
	}
}

// cutLine cuts the first line off, which ends with CR LF.
func cutLine(b []byte) (line, rest []byte, ok bool) {
	n := bytes.IndexByte(b, '\n')
	if n < 1 || b[n-1] != '\r' {
		return nil, nil, false
	}
	return b[:n-1], b[n+1:], true
}

// line takes up a field, and says whether the request can still be plain.
func (p *plain) line(line []byte) bool {
	name, value, ok := bytes.Cut(line, []byte{':'})
	if value = http1.Trim(value); !ok || !http1.IsToken(name) || http1.HasControl(value) {
		return false
	}
	return p.field(name, value)
}

// field takes up a field by its name. Those that change what is answered, or how the
// request is framed, and are not known here, make it one that is not plain.
func (p *plain) field(name, value []byte) bool {
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
	case len("Expect"):
		return !is(name, "Expect")
	case len("Trailer"):
		return !is(name, "Trailer")
	case len("Connection"):
		if is(name, "Tracestate") {
			return once(&p.tracestate, value)
		}
		return !is(name, "Connection") || is(value, "keep-alive")
	case len("Traceparent"):
		if is(name, "Traceparent") {
			return once(&p.traceparent, value)
		}
	case len("Authorization"):
		if is(name, "Authorization") {
			return once(&p.authorization, value)
		}
	case len("Content-Length"):
		if is(name, keyPlan) {
			return once(&p.plan, value)
		}
		return !is(name, "Content-Length")
	case len("Transfer-Encoding"):
		if is(name, keySecret) {
			return once(&p.secret, value)
		}
		return !is(name, "Transfer-Encoding")
	}
	return true
}

func is(name []byte, other string) bool {
	return len(name) == len(other) && bytes.EqualFold(name, []byte(other))
}

// once keeps the value of a field that may be there once, and is not empty.
func once(to *[]byte, value []byte) bool {
	if *to != nil || len(value) == 0 {
		return false
	}
	*to = value
	return true
}

// isPlainHost says whether a host is a name or an IPv4 address, with a port or not.
func isPlainHost(host []byte) bool {
	name, port, hasPort := bytes.Cut(host, []byte{':'})
	for _, c := range name {
		if c != '-' && c != '.' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
			return false
		}
	}
	for _, c := range port {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(name) > 0 && (!hasPort || len(port) > 0)
}
