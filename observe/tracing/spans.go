package tracing

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"syscall"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// Attributes without a name in the semantic conventions.
const (
	keyDB        = attribute.Key("sequins.db")
	keyVersion   = attribute.Key("sequins.version")
	keyPartition = attribute.Key("sequins.partition")
	keyProxied   = attribute.Key("sequins.proxied")
	keyPeer      = attribute.Key("sequins.peer")
	keyStage     = attribute.Key("sequins.stage")
	keyOutcome   = attribute.Key("sequins.outcome")
)

// Request is the span of a request that is being served. It is nil for a request
// that is not traced.
type Request struct {
	tracer trace.Tracer
	ctx    context.Context // contains span, for its children
	span   trace.Span
}

// Answer describes the response to a request.
type Answer struct {
	Method string
	Route  string // as in "/{db}/{key}"; "" if unknown
	TLS    bool
	Status int
	Bytes  int64 // size of the body
	// Proxied: the request came from another node.
	Proxied bool
	// DB, Version and Partition are where the key was looked up; "" and -1 if it
	// was not.
	DB, Version string
	Partition   int
}

// End ends the span.
func (r *Request) End(a Answer) {
	if r == nil {
		return
	}
	scheme := "http"
	if a.TLS {
		scheme = "https"
	}
	all := append(make([]attribute.KeyValue, 0, 12), semconv.URLScheme(scheme), semconv.HTTPResponseStatusCode(a.Status),
		semconv.HTTPResponseBodySize(int(a.Bytes)), keyProxied.Bool(a.Proxied))
	name := "HTTP"
	if slices.Contains(methods, a.Method) {
		name = a.Method
		all = append(all, semconv.HTTPRequestMethodKey.String(a.Method))
	} else {
		all = append(all, semconv.HTTPRequestMethodOther)
	}
	if a.Route != "" {
		name += " " + a.Route
		all = append(all, semconv.HTTPRoute(a.Route))
	}
	if a.DB != "" {
		all = append(all, keyDB.String(a.DB))
	}
	if a.Version != "" {
		all = append(all, keyVersion.String(a.Version))
	}
	if a.Partition >= 0 {
		all = append(all, keyPartition.Int(a.Partition))
	}
	if a.Status >= 500 {
		all = append(all, semconv.ErrorTypeKey.String(strconv.Itoa(a.Status)))
		r.span.SetStatus(codes.Error, "")
	}
	r.span.SetName(name)
	r.span.SetAttributes(all...)
	r.span.End()
}

// methods are the methods known to the conventions. A client can send any word.
var methods = []string{"GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "QUERY"}

// Attempt is the span of a request to a peer. It is nil for an attempt that is
// not traced.
type Attempt struct{ span trace.Span }

// Attempt begins the span of an attempt to get the answer from a peer
// (host:port). stage is 1 for the first attempt of a request.
func (r *Request) Attempt(method, peer string, stage int) *Attempt {
	if r == nil {
		return nil
	}
	all := append(make([]attribute.KeyValue, 0, 5), semconv.HTTPRequestMethodKey.String(method), keyPeer.String(peer), keyStage.Int(stage))
	if host, port, err := net.SplitHostPort(peer); err == nil {
		all = append(all, semconv.ServerAddress(host))
		if n, err := strconv.Atoi(port); err == nil {
			all = append(all, semconv.ServerPort(n))
		}
	}
	_, span := r.tracer.Start(r.ctx, method, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(all...))
	return &Attempt{span}
}

// AppendHeader appends the header lines that make the peer's span a child of this
// one.
func (a *Attempt) AppendHeader(b []byte) []byte {
	if a == nil {
		return b
	}
	c := a.span.SpanContext()
	b = fmt.Appendf(b, "Traceparent: 00-%s-%s-%s\r\n", c.TraceID(), c.SpanID(), c.TraceFlags())
	if state := c.TraceState().String(); state != "" { // parsed and validated: it contains no line break
		b = fmt.Appendf(b, "Tracestate: %s\r\n", state)
	}
	return b
}

// End ends the span. outcome is one of package metrics; status is that of the
// peer's answer, or 0. err is why the answer could not be used; only a system
// error in it is recorded, not its text.
func (a *Attempt) End(outcome string, status int, err error) {
	if a == nil {
		return
	}
	class := outcome
	var system syscall.Errno
	switch {
	case status >= 400:
		class = strconv.Itoa(status)
	case errors.As(err, &system):
		class = system.Error()
	}
	if status != 0 {
		a.span.SetAttributes(semconv.HTTPResponseStatusCode(status))
	}
	a.span.SetAttributes(keyOutcome.String(outcome))
	if outcome != "ok" && outcome != "cancelled" {
		a.span.SetAttributes(semconv.ErrorTypeKey.String(class))
		a.span.SetStatus(codes.Error, "")
	}
	a.span.End()
}
