package server

import (
	"encoding/json"
	"errors"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"sequins/observe/metrics"
	"sequins/proxy"
	"sequins/test/expect"
	"sequins/version"
)

func scrapeText(t *testing.T, m *metrics.Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	DebugHandler(DebugOptions{Metrics: m}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("/metrics: %d", w.Code)
	}
	return w.Body.String()
}

// answered returns the number of requests for single keys, by status code.
func answered(m *metrics.Metrics) map[string]uint64 {
	families, err := m.Registry().Gather()
	if err != nil {
		panic(err)
	}
	all := make(map[string]uint64)
	for _, f := range families {
		if f.GetName() != "sequins_requests_total" {
			continue
		}
		for _, counter := range f.GetMetric() {
			labels := make(map[string]string)
			for _, l := range counter.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if slices.Contains([]string{metrics.RouteKey, metrics.RoutePeer, metrics.RouteRedis}, labels["route"]) {
				all[labels["code"]] += uint64(counter.GetCounter().GetValue())
			}
		}
	}
	return all
}

func TestDebugHandler(t *testing.T) {
	m := metrics.New()
	s := start(t, catalogOf(t, map[string]string{"a": "one"}), testOptions{Metrics: m.Server})
	s.get(t, "/db/a")
	get := func(o DebugOptions, path string) *httptest.ResponseRecorder {
		o.Metrics = m
		w := httptest.NewRecorder()
		DebugHandler(o).ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		return w
	}
	tests := []struct {
		o    DebugOptions
		path string
		code int
		body string
	}{
		{DebugOptions{}, "/metrics", 200, `sequins_requests_total{code="200",db="db",route="key"} 1`},
		{DebugOptions{}, "/metrics", 200, "go_goroutines"},
		{DebugOptions{}, "/debug/pprof/", 404, ""},
		{DebugOptions{Pprof: true}, "/debug/pprof/", 200, "goroutine"},
		{DebugOptions{Pprof: true}, "/debug/pprof/heap?debug=1", 200, "heap profile"},
		{DebugOptions{Pprof: true}, "/debug/pprof/cmdline", 200, ""},
		{DebugOptions{}, "/debug/vars", 200, "memstats"},
		{DebugOptions{}, "/else", 404, ""},
	}
	for _, test := range tests {
		if w := get(test.o, test.path); w.Code != test.code || !strings.Contains(w.Body.String(), test.body) {
			t.Errorf("%s with %+v: %d %.200s", test.path, test.o, w.Code, w.Body)
		}
	}
	var vars struct{ Sequins metrics.Vars }
	expect.NoError(t, json.Unmarshal(get(DebugOptions{}, "/debug/vars").Body.Bytes(), &vars))
	if _, counted := vars.Sequins.QPS.ByStatus["200"]; !counted {
		t.Errorf("%+v", vars.Sequins)
	}
}

// The debug listener answers for the server, also where that asks for a token. Reasons are shown.
func TestProbesOfTheDebugListener(t *testing.T) {
	c := catalogOf(t, nil)
	s := start(t, c, testOptions{})
	h := DebugHandler(DebugOptions{Metrics: metrics.New(), Probed: s.Server})
	get := func(path string) string {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		return strconv.Itoa(w.Code) + " " + w.Body.String()
	}
	for _, test := range []struct{ path, reason, want string }{
		{"/livez", "", "200 ok\n"},
		{"/readyz", "", "200 ready\n"},
		{"/readyz", "db a has\nno version yet", "503 not ready: db a has no version yet\n"},
		{"/readyz?db=other", "", "503 not ready: there is no other\n"},
	} {
		c.reason = test.reason
		if got := get(test.path); got != test.want {
			t.Errorf("%s: %q, want %q", test.path, got, test.want)
		}
	}
	c.reason = ""
	s.Drain()
	if got := get("/readyz"); got != "503 draining: this node is shutting down\n" {
		t.Errorf("while it drains: %q", got)
	}
	if got := get("/livez"); got != "200 ok\n" {
		t.Errorf("while it drains: %q", got)
	}
}

func TestRequestLog(t *testing.T) {
	lines := new(expect.Output)
	s := start(t, catalogOf(t, map[string]string{"a/ä": "one"}), testOptions{RequestLog: lines})
	long := strings.Repeat("k", 3000)
	s.get(t, "/db/a/%C3%a4?proxy=true")
	s.do(t, "HEAD", "/db/a%2F\u00e4")
	s.get(t, "/db/a%0A%22b")
	s.get(t, "/nodb/%00")
	s.get(t, "/db?x")
	s.get(t, "/healthz")
	s.get(t, "/db/%")
	s.raw(t, "GET", "GET / x HTTP/1.1\r\n\r\n")
	s.do(t, "POST", "/db/k")
	s.get(t, "/db/"+long)
	expect.Eventually(t, "ten lines", func() bool { return strings.Count(lines.String(), "\n") == 10 })
	want := []string{
		"200 GET /db/a/%C3%A4 3 version=v1 lookup",
		"200 HEAD /db/a/%C3%A4 0 version=v1 lookup",
		"404 GET /db/a%0A%22b 12 version=v1 lookup",
		"404 GET /nodb/%00 11",
		"404 GET /db 11",
		"404 GET /healthz 3",
		"400 GET - 79",
		"400 GET - 0",
		"405 POST /db/k 43",
		"404 GET /db/" + long[:1024] + "... 12 version=v1 lookup",
	}
	form := regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z (.* \d+) (\d+\.\d{6})(?:( version=v1 lookup)=(\d+\.\d{6}))?$`)
	for i, line := range strings.Split(strings.TrimSpace(lines.String()), "\n") {
		m := form.FindStringSubmatch(line)
		if m == nil {
			t.Errorf("line %d: %s", i, line)
			continue
		}
		if got := m[1] + m[3]; got != want[i] {
			t.Errorf("line %d: %s\nwant      … %s …", i, line, want[i])
		}
		if m[4] > m[2] {
			t.Errorf("line %d: the lookup took longer than the whole: %s", i, line)
		}
	}
}

// The log shows the time of a peer separately.
func TestRequestLogOfAPeer(t *testing.T) {
	lines := new(expect.Output)
	s := start(t, away(t), testOptions{RequestLog: lines, Proxy: proxyFunc(func(*proxy.Query) (*proxy.Answer, error) {
		<-time.After(20 * time.Millisecond)
		return response(t, 200, "value", proxy.Header{}), nil
	})})
	s.get(t, "/db/k")
	expect.Eventually(t, "a line", func() bool { return strings.Count(lines.String(), "\n") == 1 })
	m := regexp.MustCompile(` (\d+\.\d{6}) version=v1 lookup=(\d+\.\d{6}) peers=(\d+\.\d{6})\n$`).FindStringSubmatch(lines.String())
	if m == nil || m[3] < "0.020000" || m[1] < m[3] || m[2] > m[1] {
		t.Errorf("the line is %q", lines)
	}
}

// A 1-in-N sample of requests is logged, and a new N applies from the next request on.
func TestRequestLogSample(t *testing.T) {
	lines := new(expect.Output)
	s := start(t, catalogOf(t, map[string]string{"a": "one"}), testOptions{RequestLog: lines, RequestLogSample: 2})
	logged := func(n int) int {
		before := strings.Count(lines.String(), "\n")
		for range n {
			s.get(t, "/db/a")
		}
		return strings.Count(lines.String(), "\n") - before
	}
	// Ten standard deviations from the mean, so that chance does not fail it.
	if n := logged(400); n < 100 || n > 300 {
		t.Errorf("%d of 400 requests are logged, one in two", n)
	}
	s.SetRequestLogSample(1 << 40)
	if n := logged(100); n > 1 {
		t.Errorf("%d of 100 requests are logged, next to none", n)
	}
	s.SetRequestLogSample(1)
	if n := logged(100); n < 99 { // the last may be on its way
		t.Errorf("%d of 100 requests are logged, all", n)
	}
	newServer(&catalog{}, testOptions{}).SetRequestLogSample(5) // nothing is logged at all
}

func TestRequestLogThatCannotBeWritten(t *testing.T) {
	w := &fussy{err: errors.New("disk full")}
	s := start(t, catalogOf(t, map[string]string{"a": "one"}), testOptions{RequestLog: w})
	for range 3 {
		if got := s.get(t, "/db/a"); got.status != 200 {
			t.Errorf("%+v", got)
		}
	}
	if n := strings.Count(s.logs.String(), "disk full"); n != 1 {
		t.Errorf("logged %d times:\n%s", n, s.logs)
	}
}

type fussy struct{ err error }

func (f *fussy) Write([]byte) (int, error) { return 0, f.err }

// A bug in answering one request is that request's alone.
func TestPanic(t *testing.T) {
	c := &panicking{catalogOf(t, map[string]string{"a": "one"})}
	m := metrics.New()
	s := start(t, c, testOptions{Metrics: m.Server})
	for range 3 {
		if got := s.get(t, "/panic/k"); got.status != 500 || got.body != "internal error\n" || !got.closed {
			t.Errorf("%+v", got)
		}
	}
	if got := s.get(t, "/db/a"); got.status != 200 {
		t.Errorf("afterwards: %+v", got)
	}
	if l := s.logs.String(); !strings.Contains(l, "target=/panic/k") || !strings.Contains(l, "server_test") && !strings.Contains(l, "debug_test.go") {
		t.Errorf("logged: %s", l)
	}
	if body := scrapeText(t, m); !strings.Contains(body, "sequins_requests_in_flight 0\n") {
		t.Error("requests stay in flight")
	}
}

type panicking struct{ *catalog }

func (p *panicking) Set(db []byte) *version.Set {
	if string(db) == "panic" {
		panic("a bug")
	}
	return p.catalog.Set(db)
}
