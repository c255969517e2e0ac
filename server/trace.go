package server

import (
	"bytes"
	"crypto/tls"

	"sequins/tracing"
)

const (
	keyTraceparent = "Traceparent"
	keyTracestate  = "Tracestate"
)

// beginTrace begins the span of a request, if it is one of those that are
// traced. Its target has been read.
func (r *request) beginTrace() {
	header := &r.ctx.Request.Header
	var parent []byte
	if all := header.PeekAll(keyTraceparent); len(all) == 1 {
		parent = all[0]
	}
	r.traceFrom(parent, header.PeekAll(keyTracestate)...)
}

// traceFrom begins the span of a request with these headers.
func (r *request) traceFrom(traceparent []byte, tracestate ...[]byte) {
	t, parent := r.s.opts.Tracer, tracing.ParseParent(traceparent)
	if t.Chosen(parent, !fromPeer(r.target.query)) {
		r.trace = t.Request(parent, string(bytes.Join(tracestate, []byte{','})), r.start)
	}
}

// endTrace ends the span. What the request was about is in it only as far as it
// is known not to be a key: the name of a db that there is.
func (r *request) endTrace() {
	a := tracing.Answer{
		Method: string(r.method()), TLS: r.conn != nil && r.conn.secure(), Status: r.code, Bytes: r.bytes, Proxied: fromPeer(r.target.query), Partition: -1,
	}
	if r.target.path != nil {
		a.Route = routes[r.target.route]
	}
	if r.db != nil {
		a.DB = r.db.name
	}
	if r.handle != nil {
		a.Version = r.handle.Version()
		if r.handle.Partitions() > 0 {
			a.Partition = r.handle.Partition(r.target.key)
		}
	}
	r.trace.End(a)
}

// routes are what the routes are called in traces.
var routes = [...]string{
	routeKey: "/{db}/{key}", routeNode: "/", routeDB: "/{db}",
	routeHealth: "/healthz", routeLive: "/livez", routeReady: "/readyz",
}

// secure says whether the client speaks TLS.
func (c *conn) secure() bool {
	_, ok := c.Conn.(*tls.Conn)
	return ok
}
