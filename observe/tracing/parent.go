package tracing

import (
	"encoding/hex"

	"go.opentelemetry.io/otel/trace"
)

// Parent is the parent span of a request. The zero value means that there is
// none.
type Parent struct {
	trace trace.TraceID
	span  trace.SpanID
	flags trace.TraceFlags
}

// Known reports whether there is a parent.
func (p Parent) Known() bool { return p.trace.IsValid() && p.span.IsValid() }

// context returns the parent as the SDK's type. A malformed tracestate is
// ignored, as W3C specifies.
func (p Parent) context(tracestate string) trace.SpanContext {
	state, err := trace.ParseTraceState(tracestate)
	if err != nil {
		state = trace.TraceState{}
	}
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: p.trace, SpanID: p.span, TraceFlags: p.flags, TraceState: state, Remote: true})
}

// parentLength is the length of a traceparent of version 00, and of its part that
// later versions share: 00-<32 digits>-<16 digits>-<2 digits>.
const parentLength = 2 + 1 + 32 + 1 + 16 + 1 + 2

// ParseParent parses a traceparent as defined by W3C Trace Context. A malformed
// one gives the zero Parent.
func ParseParent(b []byte) Parent {
	if len(b) < parentLength || b[2] != '-' || b[35] != '-' || b[52] != '-' {
		return Parent{}
	}
	var version, flags [1]byte
	var p Parent
	if !unhex(version[:], b[:2]) || !unhex(p.trace[:], b[3:35]) || !unhex(p.span[:], b[36:52]) || !unhex(flags[:], b[53:55]) || !p.Known() {
		return Parent{}
	}
	switch later := b[parentLength:]; {
	case version[0] == 0xff, len(later) > 0 && (version[0] == 0 || later[0] != '-'):
		return Parent{}
	}
	p.flags = trace.TraceFlags(flags[0]) & (trace.FlagsSampled | trace.FlagsRandom)
	return p
}

// unhex decodes lower-case hex digits, and reports whether they are valid.
func unhex(to, digits []byte) bool {
	for _, c := range digits {
		if 'A' <= c && c <= 'F' {
			return false
		}
	}
	_, err := hex.Decode(to, digits)
	return err == nil
}
