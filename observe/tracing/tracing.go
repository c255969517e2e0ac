// Package tracing owns which requests are traced, and the spans of this node: of
// requests, and of attempts at peers. The command line exports them.
//
// A request arrives with the client's traceparent. Tracer.Request begins its
// span if it is traced: as the traceparent says, otherwise at the rate of
// SetSample. A request that is not traced has a nil *Request, whose methods, and
// those of its *Attempt, do nothing. A nil *Tracer traces nothing at all.
//
// Names follow OpenTelemetry's semantic conventions for HTTP, except that
// url.path and url.full are never set, since they contain keys. No text that
// could contain a key or a value is recorded; errors are recorded as classes.
package tracing

import (
	"bytes"
	"context"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// Tracer creates spans. It is safe for concurrent use. A nil Tracer creates none.
type Tracer struct {
	tracer    trace.Tracer
	threshold atomic.Uint64 // see SetSample
}

// New returns a Tracer that creates its spans with p, which has to record every
// span. Until SetSample it starts no traces of its own. build is the version of
// the program.
func New(p trace.TracerProvider, build string) *Tracer {
	return &Tracer{tracer: p.Tracer("sequins", trace.WithInstrumentationVersion(build), trace.WithSchemaURL(semconv.SchemaURL))}
}

// SetSample sets the fraction of requests without a parent that is traced, from 0
// to 1.
func (t *Tracer) SetSample(fraction float64) {
	if t != nil {
		t.threshold.Store(uint64(min(max(fraction, 0), 1) * (1 << 63)))
	}
}

// flagsAt is where the flags of a traceparent begin: 00-<32 digits>-<16 digits>-<2 digits>.
const flagsAt = 2 + 1 + 32 + 1 + 16 + 1

// parent returns a context with the parent span of a request, if there is one. declined reports that the parent is not traced: such a
// header, which many clients send with every request, is not parsed, because that allocates.
func parent(traceparent, tracestate []byte) (ctx context.Context, declined bool) {
	ctx = context.Background()
	if len(traceparent) < flagsAt+2 || traceparent[flagsAt-1] != '-' {
		return ctx, false
	}
	if bytes.IndexByte([]byte("02468ace"), traceparent[flagsAt+1]) >= 0 {
		return ctx, true
	}
	carrier := propagation.MapCarrier{"traceparent": string(traceparent), "tracestate": string(tracestate)}
	return propagation.TraceContext{}.Extract(ctx, carrier), false
}

// Request begins the span of a request if it is traced: if it has a parent, as the
// parent's flags say; otherwise by random sampling, if begins is true: it comes
// from a client and not from another node.
func (t *Tracer) Request(traceparent, tracestate []byte, begins bool, start time.Time) *Request {
	if t == nil {
		return nil
	}
	ctx, declined := parent(traceparent, tracestate)
	if declined || !trace.SpanContextFromContext(ctx).IsSampled() && (!begins || rand.Uint64()&math.MaxInt64 >= t.threshold.Load()) {
		return nil
	}
	r := &Request{tracer: t.tracer}
	r.ctx, r.span = t.tracer.Start(ctx, "HTTP", trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(start))
	return r
}
