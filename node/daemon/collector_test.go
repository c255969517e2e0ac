package daemon

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel"

	"sequins/observe/tracing"
	sink "sequins/test/collector"
	"sequins/test/expect"
)

func openTestCollector(t *testing.T, endpoint string) (*collector, *tracing.Tracer, *expect.Output) {
	t.Helper()
	l := new(expect.Output)
	c, err := openCollector(t.Context(), endpoint, "n1:9599", "1.2", l.Logger())
	expect.NoError(t, err)
	tracer := tracing.New(c, "1.2")
	tracer.SetSample(1)
	return c, tracer, l
}

// TestExportOfSpans checks what the collector receives, including settings of the
// environment.
func TestExportOfSpans(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20token,x-tenant=one")
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://192.0.2.1:1") // which the configuration overrules
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
	t.Setenv("OTEL_TRACES_SAMPLER", "always_off") // ignored, too
	to := sink.Start(t, "")
	c, tracer, l := openTestCollector(t, to.URL+"/behind/a/proxy")
	tracer.Request(nil, nil, true, time.Now()).End(tracing.Answer{Method: "GET", Route: "/{db}/{key}", Status: 200, Version: strings.Repeat("v", 2000)})
	_ = c.Close()
	tracer.Request(nil, nil, true, time.Now()).End(tracing.Answer{Method: "GET", Status: 200})
	spans := to.Spans()
	if len(spans) != 1 || spans[0].Name != "GET /{db}/{key}" || spans[0].Kind != "server" || len(spans[0].Attributes["sequins.version"]) != 1024 {
		t.Fatalf("%+v", spans)
	}
	about := spans[0].Resource
	if about["service.name"] != "sequins" || about["service.version"] != "1.2" || about["service.instance.id"] != "n1:9599" ||
		about["deployment.environment.name"] != "test" || about["host.name"] == "" {
		t.Errorf("of the node: %v", about)
	}
	paths, headers := to.Requests()
	if paths[0] != "/behind/a/proxy/v1/traces" || headers[0].Get("Authorization") != "Bearer token" || headers[0].Get("X-Tenant") != "one" {
		t.Errorf("%v, %v", paths, headers)
	}
	if l.String() != "" {
		t.Errorf("log: %s", l)
	}
}

// A collector that never answers delays neither the ending of spans nor, for
// longer than collectorPatience, the shutdown.
func TestHangingCollector(t *testing.T) {
	gone := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-gone }))
	defer s.Close()
	defer close(gone)
	c, tracer, l := openTestCollector(t, s.URL)
	const many = 20_000 // ten times the capacity of the queue
	for range many {
		tracer.Request(nil, nil, true, time.Now()).End(tracing.Answer{Method: "GET", Status: 200})
	}
	begun := time.Now()
	_ = c.Close()
	if d := time.Since(begun); d < collectorPatience || d > 10*collectorPatience {
		t.Errorf("closing took %v", d)
	}
	if !strings.Contains(l.String(), "cannot send spans to the collector") {
		t.Errorf("log: %s", l)
	}
}

// A collector that refuses connections causes one log line.
func TestCollectorAway(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	s.Close()
	c, tracer, l := openTestCollector(t, s.URL)
	for range 10 {
		for range 600 { // more than a batch
			tracer.Request(nil, nil, true, time.Now()).End(tracing.Answer{Method: "GET", Status: 200})
		}
	}
	begun := time.Now()
	_ = c.Close()
	if d := time.Since(begun); d > 10*collectorPatience {
		t.Errorf("closing took %v", d)
	}
	if n := strings.Count(l.String(), "cannot send spans to the collector"); n != 1 || !strings.Contains(l.String(), "refused") {
		t.Errorf("log: %s", l)
	}
}

// Invalid environment variables are an error, or logged if the exporter ignores
// them.
func TestBadEnvironmentOfTraces(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", "testdata/no-such-file.pem")
	c, _, l := openTestCollector(t, "https://192.0.2.1:1")
	_ = c.Close()
	if got := l.String(); !strings.Contains(got, "level=ERROR") || !strings.Contains(got, "no-such-file.pem") {
		t.Errorf("log: %s", got)
	}
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "x")
	c, err := openCollector(t.Context(), "https://192.0.2.1:1", "", "", slog.New(slog.DiscardHandler))
	if err == nil {
		_ = c.Close()
		t.Error("resource attributes without a value are taken")
	}
}

// Errors are logged at a limited rate.
func TestErrorsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, l := openTestCollector(t, "http://c.invalid:1")
		for range 100 { // 500 seconds
			otel.Handle(errors.New("away"))
			time.Sleep(5 * time.Second)
		}
		got := l.String()
		if n := strings.Count(got, "\n"); n != 9 || !strings.Contains(got, "level=WARN") || !strings.Contains(got, "endpoint=http://c.invalid:1 error=away") {
			t.Errorf("%d lines:\n%s", n, got)
		}
		_ = c.Close()
	})
}
