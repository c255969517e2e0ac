package tracing

import (
	"context"
	"errors"
	"net"
	"slices"
	"strconv"
	"syscall"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// The attributes that the semantic conventions have no name for.
const (
	keyDB         = attribute.Key("sequins.db")
	keyVersion    = attribute.Key("sequins.version")
	keyPartition  = attribute.Key("sequins.partition")
	keyProxied    = attribute.Key("sequins.proxied")
	keyPeer       = attribute.Key("sequins.peer")
	keyStage      = attribute.Key("sequins.stage")
	keyOutcome    = attribute.Key("sequins.outcome")
	keyFiles      = attribute.Key("sequins.load.files")
	keyBytes      = attribute.Key("sequins.load.bytes")
	keyRecords    = attribute.Key("sequins.load.records")
	keyPartitions = attribute.Key("sequins.load.partitions")
)

// A Request is the span of a request that is being answered. A nil one is that
// of a request that is not traced.
type Request struct {
	tracer trace.Tracer
	ctx    context.Context // holds span, for its children
	span   trace.Span
}

// Request begins the span of a request that has been chosen.
func (t *Tracer) Request(p Parent, tracestate string, start time.Time) *Request {
	ctx := context.Background()
	if p.Known() {
		ctx = trace.ContextWithRemoteSpanContext(ctx, p.context(tracestate))
	}
	r := &Request{tracer: t.tracer}
	r.ctx, r.span = t.tracer.Start(ctx, "HTTP", trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(start))
	return r
}

// An Answer is what a request has been answered with.
type Answer struct {
	Method string
	Route  string // as in "/{db}/{key}"; "" if it is not known
	TLS    bool
	Status int
	Bytes  int64 // of the body
	// Proxied: the request came from another node.
	Proxied bool
	// DB, Version and Partition are where the key was looked for; "" and -1: it
	// did not come to that.
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

// methods are those that the conventions know. A client can send any word.
var methods = []string{"GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "QUERY"}

// An Attempt is the span of a peer being asked. A nil one is that of an attempt
// that is not traced.
type Attempt struct{ span trace.Span }

// Attempt begins the span of an attempt to get the answer from a peer
// (host:port). Stage is 1 for the first one for a request.
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

// AppendHeader appends the lines of a request's header that make the peer's span
// a child of this one.
func (a *Attempt) AppendHeader(b []byte) []byte {
	if a == nil {
		return b
	}
	c := a.span.SpanContext()
	id, span := c.TraceID(), c.SpanID()
	b = append(b, "Traceparent: 00-"...)
	b = appendHex(b, id[:])
	b = append(b, '-')
	b = appendHex(b, span[:])
	b = append(b, '-')
	b = appendHex(b, []byte{byte(c.TraceFlags())})
	b = append(b, "\r\n"...)
	if state := c.TraceState().String(); state != "" { // which has been checked: there is no line end in it
		b = append(append(append(b, "Tracestate: "...), state...), "\r\n"...)
	}
	return b
}

func appendHex(b, s []byte) []byte {
	const digits = "0123456789abcdef"
	for _, c := range s {
		b = append(b, digits[c>>4], digits[c&15])
	}
	return b
}

// End ends the span. Outcome is one of package metrics'; status that of the
// peer's answer, 0 if there is none. err is why the answer could not be used; of
// its text nothing gets into the span but that of the system's error in it.
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
	end(a.span, outcome, class)
}

// end ends the span of something that has an outcome, which is an error of a
// class unless it is one of two.
func end(span trace.Span, outcome, class string) {
	span.SetAttributes(keyOutcome.String(outcome))
	if outcome != "ok" && outcome != "cancelled" {
		span.SetAttributes(semconv.ErrorTypeKey.String(class))
		span.SetStatus(codes.Error, "")
	}
	span.End()
}

// A Load is the span of a version being loaded. A nil one is that of a load that
// is not traced.
type Load struct{ span trace.Span }

// Load begins the span of a load of a version, which is a trace of its own. All
// of them are traced: there are few.
func (t *Tracer) Load(db, version string) *Load {
	if t == nil {
		return nil
	}
	_, span := t.tracer.Start(context.Background(), "load", trace.WithAttributes(keyDB.String(db), keyVersion.String(version)))
	return &Load{span}
}

// Loaded is what a load has read and made.
type Loaded struct{ Files, Bytes, Records, Partitions int64 }

// End ends the span. Outcome is "ok", "cancelled", or the class of the error that
// the load has ended with.
func (l *Load) End(done Loaded, outcome string) {
	if l == nil {
		return
	}
	l.span.SetAttributes(keyFiles.Int64(done.Files), keyBytes.Int64(done.Bytes), keyRecords.Int64(done.Records), keyPartitions.Int64(done.Partitions))
	end(l.span, outcome, outcome)
}
