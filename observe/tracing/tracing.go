// Package tracing owns which requests are traced, and the spans of this node: of
// requests, of attempts at peers, and of loads of versions. The command
// line exports them.
//
// A request arrives with the client's traceparent (ParseParent). Tracer.Chosen
// reports whether it is traced: as the traceparent says, otherwise at the rate of
// SetSample. A request that is not traced has a nil *Request, whose methods, and
// those of its *Attempt, do nothing. A nil *Tracer traces nothing at all. The
// load of a version is a trace of its own (Tracer.Load).
//
// Names follow OpenTelemetry's semantic conventions for HTTP, except that
// url.path and url.full are never set, since they contain keys. No text that
// could contain a key or a value is recorded; errors are recorded as classes.
package tracing

import (
	"math"
	"math/rand/v2"
	"sync/atomic"

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

// Chosen reports whether a request is traced: if it has a parent, as the parent's
// flags say; otherwise by random sampling, if begins is true: it comes from a
// client and not from another node.
func (t *Tracer) Chosen(p Parent, begins bool) bool {
	if p.Known() {
		return p.flags.IsSampled()
	}
	return begins && rand.Uint64()&math.MaxInt64 < t.threshold.Load()
}
