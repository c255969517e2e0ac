package metrics

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// openMetrics returns the lines of a scrape in OpenMetrics that begin with prefix.
func openMetrics(t *testing.T, m *Metrics, prefix string) (lines []string) {
	t.Helper()
	req := httptest.NewRequest("GET", "/metrics", nil)
	req.Header.Set("Accept", "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1") // Prometheus's
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, req)
	if !strings.HasPrefix(w.Header().Get("Content-Type"), "application/openmetrics-text") || !strings.HasSuffix(w.Body.String(), "# EOF\n") {
		t.Fatalf("%d %v", w.Code, w.Header())
	}
	for l := range strings.Lines(w.Body.String()) {
		if strings.HasPrefix(l, prefix) {
			lines = append(lines, strings.TrimSpace(l))
		}
	}
	return lines
}

// The last traced request of each bucket is its exemplar, in OpenMetrics alone, also above the last bound.
func TestExemplars(t *testing.T) {
	m := New()
	r, at := m.Server.DB("a").Clients, time.Unix(1_700_000_000, 0)
	for _, d := range []time.Duration{3 * time.Microsecond, 4 * time.Microsecond, time.Minute} {
		r.Done(0, 200, d, 1)
		r.Exemplar("trace of "+d.String(), d, at)
	}
	r.Done(0, 200, time.Millisecond, 1) // not traced
	want := map[string]string{
		`le="5e-06"`:  ` 2 # {trace_id="trace of 4µs"} 4e-06 1.7e+09`,
		`le="0.001"`:  ` 3`,
		`le="+Inf"`:   ` 4 # {trace_id="trace of 1m0s"} 60.0 1.7e+09`,
		`le="10.0"`:   ` 3`,
		`le="2e-06"`:  ` 0`,
		`le="0.0001"`: ` 2`,
	}
	found := 0
	for _, l := range openMetrics(t, m, `sequins_request_duration_seconds_bucket{db="a"`) {
		_, rest, _ := strings.Cut(l, `route="key",`)
		if le, value, _ := strings.Cut(rest, "}"); want[le] != "" {
			if found++; value != want[le] {
				t.Errorf("%s%s, want %s", le, value, want[le])
			}
		}
	}
	if found != len(want) {
		t.Errorf("%d buckets of %d", found, len(want))
	}
	for _, l := range scrape(t, m, "sequins_request_duration") {
		if strings.Contains(l, "trace") {
			t.Error(l)
		}
	}
}

// Everything can be exposed as OpenMetrics, which is stricter.
func TestOpenMetrics(t *testing.T) {
	m := everything(t)
	lines := openMetrics(t, m, "")
	if len(lines) < 200 {
		t.Errorf("%d lines", len(lines))
	}
}

// A traced request costs one exemplar and its label.
func TestExemplarAllocations(t *testing.T) {
	r, now := New().Server.DB("a").Clients, time.Now()
	r.Exemplar("x", time.Millisecond, now)
	if n := testing.AllocsPerRun(100, func() { r.Exemplar("x", time.Millisecond, now) }); n > 3 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkExemplar(b *testing.B) {
	r, now := New().Server.DB("a").Clients, time.Now()
	for b.Loop() {
		r.Exemplar("0123456789abcdef0123456789abcdef", 3*time.Microsecond, now)
	}
}
