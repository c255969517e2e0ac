package tracing

import (
	"encoding/hex"

	"go.opentelemetry.io/otel/trace"
)

// A Parent is the span that a request comes from. The zero value is none.
type Parent struct {
	trace trace.TraceID
	span  trace.SpanID
	flags trace.TraceFlags
}

// Known says whether there is one.
func (p Parent) Known() bool { return p.trace.IsValid() && p.span.IsValid() }

// context is the parent as the SDK wants it. A tracestate that is malformed
// counts as none, as W3C has it.
func (p Parent) context(tracestate string) trace.SpanContext {
	state, err := trace.ParseTraceState(tracestate)
	if err != nil {
		state = trace.TraceState{}
	}
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: p.trace, SpanID: p.span, TraceFlags: p.flags, TraceState: state, Remote: true})
}

// parentLength is that of a traceparent of version 00, which is how those of
// later versions begin: 00-<32 digits>-<16 digits>-<2 digits>.
const parentLength = 2 + 1 + 32 + 1 + 16 + 1 + 2

// ParseParent reads a traceparent as W3C's Trace Context defines it. One that is
// malformed in any way is none.
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

// unhex decodes digits, none of which may be a capital.
func unhex(to, digits []byte) bool {
	for _, c := range digits {
		if 'A' <= c && c <= 'F' {
			return false
		}
	}
	_, err := hex.Decode(to, digits)
	return err == nil
}
