package server

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"sequins/observe/metrics"
	"sequins/observe/tracing"
	"sequins/proxy"
	"sequins/test/expect"
)

const (
	traceID   = "4bf92f3577b34da6a3ce929d0e0e4736"
	sampled   = "00-" + traceID + "-00f067aa0ba902b7-01"
	unsampled = "00-" + traceID + "-00f067aa0ba902b7-00"
)

// tracer returns a tracer for requests that their clients sample, and the recorder of its ended spans.
func tracer() (*tracing.Tracer, *tracetest.SpanRecorder) {
	r := tracetest.NewSpanRecorder()
	return tracing.New(sdk.NewTracerProvider(sdk.WithSpanProcessor(r)), "test"), r
}

// attributesOf renders those of a span.
func attributesOf(s sdk.ReadOnlySpan) map[string]string {
	all := map[string]string{}
	for _, a := range s.Attributes() {
		all[string(a.Key)] = a.Value.String()
	}
	return all
}

// Which requests have a span, with which name and attributes, and that no attribute contains a key.
func TestRequestSpans(t *testing.T) {
	tests := []struct {
		method, target string
		header         []string
		name           string // "": there is no span
		want           string // some attributes, in the order of the letters
	}{
		{"GET", "/db/secret", []string{"Traceparent: " + sampled}, "GET /{db}/{key}", "status=200 db=db version=v1 partition=0 proxied=false"},
		{"HEAD", "/db/secret", []string{"tRaCePaReNt: " + sampled}, "HEAD /{db}/{key}", "status=200 db=db version=v1 partition=0 proxied=false"},
		{"GET", "/db/secret?proxy=v1", []string{"Traceparent: " + sampled}, "GET /{db}/{key}", "status=200 db=db version=v1 partition=0 proxied=true"},
		{"GET", "/db/secret?explain", []string{"Traceparent: " + sampled}, "GET /{db}/{key}", "status=200 db=db version=v1 partition=0 proxied=false"},
		{"GET", "/db/secret2?x=secret3", []string{"Traceparent: " + sampled}, "GET /{db}/{key}", "status=404 db=db version=v1 partition=0 proxied=false"},
		{"GET", "/secret/secret", []string{"Traceparent: " + sampled}, "GET /{db}/{key}", "status=404 proxied=false"},
		{"GET", "/secret", []string{"Traceparent: " + sampled}, "GET /{db}", "status=404 proxied=false"},
		{"GET", "/db/secret%", []string{"Traceparent: " + sampled}, "GET", "status=400 proxied=false"},
		{"SECRET", "/db/secret", []string{"Traceparent: " + sampled}, "HTTP /{db}/{key}", "status=405 proxied=false"},
		{"GET", "/livez", []string{"Traceparent: " + sampled}, "GET /livez", "status=200 proxied=false"},
		{"GET", "/db/large", []string{"Traceparent: " + sampled}, "GET /{db}/{key}", "status=200 db=db version=v1 partition=1 proxied=false"},
		{"GET", "/db/secret", nil, "", ""},
		{"GET", "/db/secret", []string{"Traceparent: " + unsampled}, "", ""},
		{"GET", "/db/secret", []string{"Traceparent: " + strings.ToUpper(sampled)}, "", ""},
		{"GET", "/db/secret", []string{"Traceparent: " + sampled, "Traceparent: " + sampled}, "", ""},
	}
	for _, test := range tests {
		tracer, ended := tracer()
		s := start(t, catalogOf(t, map[string]string{"secret": "secret value", "large": noise(1, 3<<20)}), testOptions{Tracer: tracer})
		s.do(t, test.method, test.target, test.header...)
		if test.name == "" { // and if there were a span, it would have ended before the answer was sent
			if len(ended.Ended()) != 0 {
				t.Errorf("%s %s with %q: there is a span", test.method, test.target, test.header)
			}
			continue
		}
		expect.Eventually(t, "the span has ended", func() bool { return len(ended.Ended()) > 0 })
		spans := ended.Ended()
		all := attributesOf(spans[0])
		var got []string
		for _, short := range []string{"http.response.status_code", "sequins.db", "sequins.version", "sequins.partition", "sequins.proxied"} {
			if v, there := all[short]; there {
				short = short[strings.LastIndexByte(short, '.')+1:]
				got = append(got, strings.TrimSuffix(short, "_code")+"="+v)
			}
		}
		if spans[0].Name() != test.name || strings.Join(got, " ") != test.want || spans[0].SpanContext().TraceID().String() != traceID {
			t.Errorf("%s %s: %q %q, want %q %q", test.method, test.target, spans[0].Name(), got, test.name, test.want)
		}
		for name, v := range all {
			if strings.Contains(strings.ToLower(v), "secret") {
				t.Errorf("%s %s: %s is %q", test.method, test.target, name, v)
			}
		}
	}
}

// What comes from another node is traced if that node does, and never of its own.
func TestSampledAtTheEdge(t *testing.T) {
	tracer, ended := tracer()
	tracer.SetSample(1)
	s := start(t, catalogOf(t, map[string]string{"a": "one"}), testOptions{Tracer: tracer})
	for _, target := range []string{"/db/a?proxy=v1", "/?proxy=status", "/db/a?x&proxy=v1"} {
		s.get(t, target)
	}
	s.get(t, "/db/a")
	if spans := ended.Ended(); len(spans) != 1 || spans[0].Parent().IsValid() {
		t.Errorf("%d spans", len(spans))
	}
}

// A request to a peer names the span of the attempt if the request is traced; otherwise it has the
// client's fields.
func TestTraceGoesOn(t *testing.T) {
	client := []string{"traceparent: " + sampled, "tracestate: a=1", "tracestate: b=2", "Range: bytes=0-0"}
	rest := []proxy.Field{{Name: "Range", Value: []byte("bytes=0-0")}}
	for on, want := range map[bool][]proxy.Field{
		true:  rest,
		false: append(slices.Clone(rest), proxy.Field{Name: "Traceparent", Value: []byte(sampled)}, proxy.Field{Name: "Tracestate", Value: []byte("a=1,b=2")}),
	} {
		var o testOptions
		var ended *tracetest.SpanRecorder
		if on {
			o.Tracer, ended = tracer()
		}
		var fields []proxy.Field
		var header string
		o.Proxy = proxyFunc(func(q *proxy.Query) (*proxy.Answer, error) {
			for _, f := range q.Fields {
				fields = append(fields, proxy.Field{Name: f.Name, Value: bytes.Clone(f.Value)})
			}
			a := q.Trace.Attempt("GET", "p:1", 1)
			header = string(a.AppendHeader(nil))
			a.End("ok", 200, nil)
			return nil, context.DeadlineExceeded
		})
		s := start(t, away(t), o)
		if got := s.do(t, "GET", "/db/a", client...); got.status != 504 {
			t.Errorf("%+v", got)
		}
		if diff := cmp.Diff(want, fields); diff != "" {
			t.Errorf("tracing %v (-want +got):\n%s", on, diff)
		}
		if !on {
			continue
		}
		attempt, request := ended.Ended()[0], ended.Ended()[1]
		if !strings.HasPrefix(header, "Traceparent: 00-"+traceID+"-"+attempt.SpanContext().SpanID().String()+"-01\r\nTracestate: a=1,b=2\r\n") {
			t.Errorf("the peer is told %q", header)
		}
		if attempt.Parent().SpanID() != request.SpanContext().SpanID() || attributesOf(request)["error.type"] != "504" {
			t.Errorf("the attempt's parent is %v; the request: %v", attempt.Parent(), attributesOf(request))
		}
	}
}

// A request that is not traced costs no allocation: neither one without traceparent, nor one whose
// client did not sample it.
func TestUntracedDoesNotAllocate(t *testing.T) {
	tracer, ended := tracer()
	tracer.SetSample(1e-15)
	s := start(t, catalogOf(t, map[string]string{"small": strings.Repeat("x", 100)}), testOptions{Metrics: metrics.New().Server, Tracer: tracer})
	runs := 1000
	if raceEnabled {
		runs = 10 // only to see that it runs
	}
	for _, header := range []string{"none", unsampled, "nonsense"} {
		for _, target := range []string{"/db/small", "/db/absent", "/db/small?proxy=v1"} {
			c := newClient(t, s.addr, target, "Traceparent: "+header)
			n := testing.AllocsPerRun(runs, func() { c.ask(t) })
			if !raceEnabled && n != 0 {
				t.Errorf("GET %s with traceparent %q: %v allocations", target, header, n)
			}
		}
	}
	if n := len(ended.Ended()); n != 0 {
		t.Errorf("%d spans", n)
	}
}

// BenchmarkTracing measures a hit without tracing, with tracing for a request that is not sampled,
// and for one that is.
func BenchmarkTracing(b *testing.B) {
	for _, c := range []struct {
		name   string
		sample float64
	}{{"off", -1}, {"unsampled", 1e-15}, {"sampled", 1}} {
		b.Run(c.name, func(b *testing.B) {
			var o testOptions
			if c.sample >= 0 {
				o.Tracer = tracing.New(sdk.NewTracerProvider(), "bench")
				o.Tracer.SetSample(c.sample)
			}
			s := start(b, catalogOf(b, map[string]string{"small": strings.Repeat("x", 100)}), o)
			c := newClient(b, s.addr, "/db/small")
			b.ReportAllocs()
			for b.Loop() {
				c.ask(b)
			}
		})
	}
}

// A request that came over TLS has a span that says so.
func TestSpanOverTLS(t *testing.T) {
	tracer, ended := tracer()
	tracer.SetSample(1)
	s, client := startTLS(t, catalogOf(t, map[string]string{"a": "one"}), testOptions{Tracer: tracer})
	resp, err := client.Get("https://" + s.addr + "/db/a")
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("%v, %v", resp, err)
	}
	resp.Body.Close()
	if got := attributesOf(ended.Ended()[0])["url.scheme"]; got != "https" {
		t.Errorf("the scheme is %q", got)
	}
}
