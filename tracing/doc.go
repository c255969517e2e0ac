// Package tracing owns which requests are traced, and the spans that a trace has
// here: of a request, of the attempts to get its answer from a peer, and of the
// loads of versions. Where they go is package otlp's.
//
// A request comes with the traceparent that its client sent (ParseParent).
// Tracer.Chosen says whether it is traced: as the client says, and where that
// says nothing as often as SetSample has it. For one that is not, nothing else is
// done: it has a nil *Request, whose methods, and those of the *Attempt that it
// makes, do nothing. A nil *Tracer traces nothing at all.
//
// Names follow OpenTelemetry's semantic conventions for HTTP, with one exception:
// url.path and url.full are never there, since keys are in them. No text that
// could hold a key or a value gets into a span; errors are classes.
package tracing
