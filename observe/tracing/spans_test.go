package tracing

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

// recorded returns a Tracer, and a recorder of its spans.
func recorded(t testing.TB) (*Tracer, *tracetest.SpanRecorder) {
	t.Helper()
	r := tracetest.NewSpanRecorder()
	tracer := New(sdk.NewTracerProvider(sdk.WithSpanProcessor(r)), "test")
	tracer.SetSample(1)
	return tracer, r
}

// root begins the span of a request without a parent.
func root(t *Tracer) *Request { return t.Request(nil, []byte("a=1"), true, time.Now()) }

// child begins the span of a request with a traceparent.
func child(t *Tracer, traceparent, tracestate string) *Request {
	return t.Request([]byte(traceparent), []byte(tracestate), true, time.Now())
}

// attributes returns the attributes of a span as strings.
func attributes(s sdk.ReadOnlySpan) map[string]string {
	all := map[string]string{}
	for _, a := range s.Attributes() {
		all[string(a.Key)] = a.Value.String()
	}
	return all
}

// The spans of the client, the request and the peer form a chain.
func TestChain(t *testing.T) {
	tracer, ended := recorded(t)
	r := child(tracer, sampled, "a=1,b=2")
	a := r.Attempt("HEAD", "[::1]:9599", 2)
	header := string(a.AppendHeader([]byte("X: y\r\n")))
	a.End("ok", 304, nil)
	r.End(Answer{Method: "GET", Status: 200, Partition: -1})
	spans := ended.Ended()
	attempt, request := spans[0], spans[1]
	if p := request.Parent(); p.TraceID().String() != sampled[3:35] || p.SpanID().String() != sampled[36:52] || !p.IsRemote() {
		t.Errorf("the parent of the request is %v", p)
	}
	if p := attempt.Parent(); !p.Equal(request.SpanContext()) {
		t.Errorf("the parent of the attempt is %v", p)
	}
	id := attempt.SpanContext()
	want := fmt.Sprintf("X: y\r\nTraceparent: 00-%s-%s-01\r\nTracestate: a=1,b=2\r\n", sampled[3:35], id.SpanID())
	if header != want {
		t.Errorf("the header is %q, want %q", header, want)
	}
	about := map[string]string{"http.request.method": "HEAD", "server.address": "::1", "server.port": "9599", "sequins.peer": "[::1]:9599",
		"sequins.stage": "2", "sequins.outcome": "ok", "http.response.status_code": "304"}
	if diff := cmp.Diff(about, attributes(attempt)); diff != "" {
		t.Errorf("attempt (-want +got):\n%s", diff)
	}
}

// A malformed tracestate is dropped, and the trace continues.
func TestTracestate(t *testing.T) {
	tracer, _ := recorded(t)
	for _, state := range []string{"", "a", "a=1\r\nX-Evil: 1", "a=1,a=2", strings.Repeat("a=1,", 100), "A=1", "a=\x00"} {
		header := string(child(tracer, sampled, state).Attempt("GET", "a:1", 1).AppendHeader(nil))
		if strings.Contains(header, "Tracestate") || strings.Count(header, "\r\n") != 1 || !strings.Contains(header, "4bf92f3577b34da6a3ce929d0e0e4736") {
			t.Errorf("%q: %q", state, header)
		}
	}
}

// A request without a parent is the root of a trace.
func TestRoot(t *testing.T) {
	tracer, ended := recorded(t)
	root(tracer).End(Answer{Method: "BREW", Route: "/{db}/{key}", TLS: true, Status: 502, Bytes: 7, DB: "d", Version: "v", Partition: 3, Proxied: true})
	s := ended.Ended()[0]
	want := map[string]string{"http.request.method": "_OTHER", "http.route": "/{db}/{key}", "url.scheme": "https", "http.response.status_code": "502", "error.type": "502",
		"http.response.body.size": "7", "sequins.db": "d", "sequins.version": "v", "sequins.partition": "3", "sequins.proxied": "true"}
	if diff := cmp.Diff(want, attributes(s)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if s.Name() != "HTTP /{db}/{key}" || s.Parent().IsValid() || s.SpanContext().TraceState().Len() != 0 || s.Status().Code != codes.Error {
		t.Errorf("%s, parent %v, state %q, status %v", s.Name(), s.Parent(), s.SpanContext().TraceState(), s.Status())
	}
}

func TestAttemptEnds(t *testing.T) {
	refused := fmt.Errorf("peer x: %w", &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)})
	tests := []struct {
		outcome string
		status  int
		err     error
		failed  bool
		class   string
	}{
		{"ok", 404, nil, false, ""},
		{"cancelled", 0, nil, false, ""},
		{"cancelled", 200, nil, false, ""},
		{"cancelled", 0, refused, false, ""},
		{"timeout", 0, nil, true, "timeout"},
		{"absent", 501, errors.New("it does not have it"), true, "501"},
		{"error", 0, refused, true, "connection refused"},
		{"error", 0, fmt.Errorf("malformed: secret %w", io.EOF), true, "error"},
		{"error", 200, errors.New("secret"), true, "error"},
	}
	for _, test := range tests {
		tracer, ended := recorded(t)
		root(tracer).Attempt("GET", "a:1", 1).End(test.outcome, test.status, test.err)
		s := ended.Ended()[0]
		got := attributes(s)
		if failed := s.Status().Code == codes.Error; failed != test.failed || got["error.type"] != test.class || got["sequins.outcome"] != test.outcome {
			t.Errorf("%+v: failed %v, %v", test, failed, got)
		}
		if text := fmt.Sprint(got, s.Status(), s.Events()); strings.Contains(text, "secret") {
			t.Errorf("%+v: the text of an error is in the span: %s", test, text)
		}
	}
}

// The sampling rate is as configured, and a parent's decision is followed.
func TestChosen(t *testing.T) {
	tracer, _ := recorded(t)
	const n = 10_000
	for fraction, want := range map[float64][2]int{0: {0, 0}, -1: {0, 0}, 1: {n, n}, 2: {n, n}, 0.5: {n * 48 / 100, n * 52 / 100}} {
		tracer.SetSample(fraction)
		chosen := 0
		for range n {
			if root(tracer) != nil {
				chosen++
			}
		}
		if chosen < want[0] || chosen > want[1] {
			t.Errorf("%d of %d are chosen at %v", chosen, n, fraction)
		}
		for _, begins := range []bool{true, false} {
			if tracer.Request([]byte(sampled), nil, begins, time.Now()) == nil || tracer.Request([]byte(unsampled), nil, begins, time.Now()) != nil {
				t.Errorf("a parent is not heeded at %v", fraction)
			}
		}
		if tracer.Request(nil, nil, false, time.Now()) != nil {
			t.Errorf("what comes from another node is the root of a trace at %v", fraction)
		}
	}
}

// A request that is not traced allocates nothing.
func TestNothing(t *testing.T) {
	var off *Tracer
	off.SetSample(1)
	var none *Request
	tracer, _ := recorded(t)
	tracer.SetSample(0)
	header, nonsense, now := []byte(unsampled), []byte("nonsense"), time.Now()
	buf := make([]byte, 0, 100)
	err := errors.New("x")
	n := testing.AllocsPerRun(1000, func() {
		if tracer.Request(header, nil, true, now) != nil || tracer.Request(nonsense, nil, true, now) != nil || tracer.Request(nil, nil, true, now) != nil ||
			off.Request(header, nil, true, now) != nil {
			t.Error("chosen")
		}
		a := none.Attempt("GET", "a:1", 1)
		if len(a.AppendHeader(buf)) != 0 {
			t.Error("a nil Attempt has appended a header")
		}
		a.End("ok", 200, err)
		none.End(Answer{})
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkChosen(b *testing.B) {
	tracer, _ := recorded(b)
	tracer.SetSample(1e-12)
	for b.Loop() {
		root(tracer)
	}
}

func BenchmarkSampled(b *testing.B) {
	tracer := New(sdk.NewTracerProvider(), "test")
	tracer.SetSample(1)
	b.ReportAllocs()
	for b.Loop() {
		root(tracer).End(Answer{Method: "GET", Route: "/{db}/{key}", Status: 200, DB: "d", Version: "v"})
	}
}
