package otlp

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"sequins/observe/tracing"
	"sequins/test/collector"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lines collects log lines.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func open(t *testing.T, endpoint string) (*Collector, *tracing.Tracer, *lines) {
	t.Helper()
	l := new(lines)
	c, err := Open(context.Background(), Options{Endpoint: endpoint, Node: "n1:9599", Build: "1.2", Logger: slog.New(slog.NewTextHandler(l, nil))})
	if err != nil {
		t.Fatal(err)
	}
	return c, tracing.New(c.Provider(), "1.2"), l
}

// TestExport checks what the collector receives, including settings of the
// environment.
func TestExport(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20token,x-tenant=one")
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://192.0.2.1:1") // which the configuration overrules
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
	t.Setenv("OTEL_TRACES_SAMPLER", "always_off") // ignored, too
	sink := collector.Start(t, "")
	c, tracer, l := open(t, sink.URL+"/behind/a/proxy")
	tracer.Request(tracing.Parent{}, "", time.Now()).End(tracing.Answer{Method: "GET", Route: "/{db}/{key}", Status: 200, Version: strings.Repeat("v", 2000)})
	c.Close()
	tracer.Load("too", "late").End(tracing.Loaded{}, "ok")
	spans := sink.Spans()
	if len(spans) != 1 || spans[0].Name != "GET /{db}/{key}" || spans[0].Kind != "server" || len(spans[0].Attributes["sequins.version"]) != 1024 {
		t.Fatalf("%+v", spans)
	}
	about := spans[0].Resource
	if about["service.name"] != "sequins" || about["service.version"] != "1.2" || about["service.instance.id"] != "n1:9599" ||
		about["deployment.environment.name"] != "test" || about["host.name"] == "" {
		t.Errorf("of the node: %v", about)
	}
	paths, headers := sink.Requests()
	if paths[0] != "/behind/a/proxy/v1/traces" || headers[0].Get("Authorization") != "Bearer token" || headers[0].Get("X-Tenant") != "one" {
		t.Errorf("%v, %v", paths, headers)
	}
	if l.String() != "" {
		t.Errorf("log: %s", l)
	}
}

// A collector that never answers delays neither the ending of spans nor, for
// longer than closeTime, the shutdown.
func TestHangingCollector(t *testing.T) {
	gone := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-gone }))
	defer s.Close()
	defer close(gone)
	c, tracer, l := open(t, s.URL)
	const many = 20_000 // ten times the capacity of the queue
	for range many {
		tracer.Request(tracing.Parent{}, "", time.Now()).End(tracing.Answer{Method: "GET", Status: 200})
	}
	begun := time.Now()
	c.Close()
	if d := time.Since(begun); d < closeTime || d > 10*closeTime {
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
	c, tracer, l := open(t, s.URL)
	for range 10 {
		for range 600 { // more than a batch
			tracer.Load("db", "v").End(tracing.Loaded{}, "ok")
		}
	}
	begun := time.Now()
	c.Close()
	if d := time.Since(begun); d > 10*closeTime {
		t.Errorf("closing took %v", d)
	}
	if n := strings.Count(l.String(), "cannot send spans to the collector"); n != 1 || !strings.Contains(l.String(), "refused") {
		t.Errorf("log: %s", l)
	}
}

// Invalid environment variables are an error, or logged if the exporter ignores
// them.
func TestBadEnvironment(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", "testdata/no-such-file.pem")
	c, _, l := open(t, "https://192.0.2.1:1")
	c.Close()
	if got := l.String(); !strings.Contains(got, "level=ERROR") || !strings.Contains(got, "no-such-file.pem") {
		t.Errorf("log: %s", got)
	}
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "x")
	c, err := Open(context.Background(), Options{Endpoint: "https://192.0.2.1:1", Logger: slog.New(slog.DiscardHandler)})
	if err == nil {
		c.Close()
		t.Error("resource attributes without a value are taken")
	}
}

// Errors are logged at a limited rate.
func TestErrorsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := new(lines)
		handle := errorHandler(Options{Logger: slog.New(slog.NewTextHandler(l, nil)), Endpoint: "http://c:1"})
		for range 100 { // 500 seconds
			handle(errors.New("away"))
			time.Sleep(5 * time.Second)
		}
		got := l.String()
		if n := strings.Count(got, "\n"); n != 9 || !strings.Contains(got, "level=WARN") || !strings.Contains(got, "endpoint=http://c:1 error=away") {
			t.Errorf("%d lines:\n%s", n, got)
		}
	})
}
