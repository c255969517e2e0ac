package tracing

import (
	"math"
	"math/rand/v2"
	"sync/atomic"

	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// Tracer makes spans. It is safe for concurrent use. A nil one makes none.
type Tracer struct {
	tracer    trace.Tracer
	threshold atomic.Uint64 // see SetSample
}

// New returns a Tracer whose spans a provider makes, which has to record each
// that it is asked for. It traces no request of its own accord before SetSample.
// build is the version of the program.
func New(p trace.TracerProvider, build string) *Tracer {
	return &Tracer{tracer: p.Tracer("sequins", trace.WithInstrumentationVersion(build), trace.WithSchemaURL(semconv.SchemaURL))}
}

// SetSample sets which fraction of the requests that begin here is traced, from 0
// to 1.
func (t *Tracer) SetSample(fraction float64) {
	if t != nil {
		t.threshold.Store(uint64(min(max(fraction, 0), 1) * (1 << 63)))
	}
}

// Chosen says whether a request is to be traced: if it has a parent, as that
// says; if not, by chance, provided that it begins here and does not come from
// another node.
func (t *Tracer) Chosen(p Parent, begins bool) bool {
	if p.Known() {
		return p.flags.IsSampled()
	}
	return begins && rand.Uint64()&math.MaxInt64 < t.threshold.Load()
}
