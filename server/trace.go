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
	header, t := &r.ctx.Request.Header, r.s.opts.Tracer
	var parent tracing.Parent
	if all := header.PeekAll(keyTraceparent); len(all) == 1 {
		parent = tracing.ParseParent(all[0])
	}
	if t.Chosen(parent, !fromPeer(r.target.query)) {
		state := bytes.Join(header.PeekAll(keyTracestate), []byte{','})
		r.trace = t.Request(parent, string(state), r.start)
	}
}

// endTrace ends the span. What the request was about is in it only as far as it
// is known not to be a key: the name of a db that there is.
func (r *request) endTrace() {
	c, _ := r.ctx.Conn().(*conn)
	a := tracing.Answer{
		Method: string(r.ctx.Method()), TLS: c != nil && c.secure(), Status: r.code, Bytes: r.bytes, Proxied: fromPeer(r.target.query), Partition: -1,
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
	r.trace, r.query.Trace = nil, nil
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
