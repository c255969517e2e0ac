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
