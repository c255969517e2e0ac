package server

import (
	"strings"
	"testing"
)

const (
	app    = "Origin: https://app.example"
	other  = "Origin: https://other.example"
	asks   = "Access-Control-Request-Method: GET"
	header = "Access-Control-Request-Headers: authorization"
)

// routesForCORS are requests of every kind, with their status without tokens and, if they need one, without one.
var routesForCORS = []struct {
	method, target, line string
	status, shut         int
}{
	{"GET", "/db/a", "", 200, 401},
	{"GET", "/db/a", "X: y\r\nIf-None-Match: *", 304, 401}, // of net/http
	{"HEAD", "/db/a", "", 200, 401},
	{"GET", "/db/a", "Range: bytes=0-1", 206, 401},
	{"GET", "/db/a", "Range: bytes=100-", 416, 401},
	{"GET", "/db/a?explain", "", 200, 401},
	{"GET", "/db/absent", "", 404, 401},
	{"GET", "/db/absent", "If-Match: *", 404, 401},
	{"GET", "/db/%zz", "", 400, 400},
	{"GET", "/nodb/a", "", 404, 401},
	{"PUT", "/db/a", "", 405, 405},
	{"GET", "/db?key=a", "", 200, 401},
	{"POST", "/db", "", 400, 401},
	{"GET", "/db?prefix=", "", 200, 401},
	{"GET", "/db?prefix=&limit=x", "", 400, 401},
	{"GET", "/db?count", "", 200, 401},
	{"GET", "/db?partitions", "", 200, 401},
	{"GET", "/", "", 200, 401},
	{"GET", "/", "Accept: text/html", 200, 401},
	{"GET", "/db", "", 404, 401},
	{"GET", "/healthz", "", 404, 404},
	{"GET", "/livez", "", 200, 200},
	{"GET", "/readyz", "", 200, 200},
	{"GET", "/-/openapi.yaml", "", 200, 401},
}

// What pages of an origin may read, on every route: nothing unless that is configured, and with a list of origins an answer
// varies by them, whoever asks.
func TestCORS(t *testing.T) {
	tokens, _ := openTokens(t, tokensFile)
	for name, test := range map[string]struct {
		o            testOptions
		allow        [3]string // the Access-Control-Allow-Origin for app, for other, and without Origin
		variesByWhom bool
	}{
		"off":         {testOptions{}, [3]string{}, false},
		"list":        {testOptions{Delivery: Delivery{Origins: []string{"http://x", "https://app.example"}}}, [3]string{"https://app.example"}, true},
		"all":         {testOptions{Delivery: Delivery{Origins: []string{"*"}}}, [3]string{"*", "*", "*"}, false},
		"with tokens": {testOptions{Tokens: tokens, Delivery: Delivery{Origins: []string{"https://app.example"}}}, [3]string{"https://app.example"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, catalogOf(t, map[string]string{"a": "one"}), test.o)
			for _, r := range routesForCORS {
				want := r.status
				if test.o.Tokens != nil {
					want = r.shut
				}
				for i, origin := range []string{app, other, ""} {
					lines := strings.Split(strings.Trim(origin+"\r\n"+r.line, "\r\n"), "\r\n")
					got := s.do(t, r.method, r.target, lines...)
					if got.status != want {
						t.Errorf("%s %s, %q: %d, want %d", r.method, r.target, lines, got.status, want)
					}
					checkCORS(t, r.method+" "+r.target+" "+origin, got, test.allow[i], test.variesByWhom)
				}
			}
		})
	}
}

func checkCORS(t *testing.T, what string, got answer, allowed string, varies bool) {
	t.Helper()
	h := got.header
	if h.Get("Access-Control-Allow-Origin") != allowed || len(h["Access-Control-Allow-Origin"]) > 1 || h["Access-Control-Allow-Credentials"] != nil {
		t.Errorf("%s: %v, want %q allowed", what, h, allowed)
	}
	if exposed := h.Get("Access-Control-Expose-Headers"); (exposed != "") != (allowed != "") || allowed != "" && !strings.Contains(exposed, "X-Sequins-Version") {
		t.Errorf("%s: exposes %q", what, exposed)
	}
	if vary := h["Vary"]; len(vary) > 1 || strings.Contains(strings.Join(vary, ""), "Origin") != varies {
		t.Errorf("%s: Vary is %q, by origin: %t", what, vary, varies)
	}
}

func TestPreflight(t *testing.T) {
	tokens, _ := openTokens(t, tokensFile)
	c := catalogOf(t, map[string]string{"a": "one"})
	list := start(t, c, testOptions{Tokens: tokens, Delivery: Delivery{Origins: []string{"https://app.example"}}})
	all := start(t, c, testOptions{Delivery: Delivery{Origins: []string{"*"}}})
	off := start(t, c, testOptions{})
	for target, methods := range map[string]string{"/db/a": "GET, HEAD", "/db": "GET, HEAD, POST", "/nodb": "GET, HEAD, POST", "/": "GET, HEAD"} {
		for s, allowed := range map[*running]string{list: "https://app.example", all: "*"} {
			got := s.do(t, "OPTIONS", target, app, asks, header)
			h := got.header
			if got.status != 204 || got.body != "" || h.Get("Access-Control-Allow-Methods") != methods || h.Get("Access-Control-Max-Age") != "7200" || got.closed {
				t.Errorf("%s: %+v", target, got)
			}
			for _, field := range []string{"Authorization", "Content-Type", "If-None-Match", "Range", "X-Sequins-At-Least", "X-Sequins-Version"} {
				if !strings.Contains(h.Get("Access-Control-Allow-Headers"), field) {
					t.Errorf("%s: %s is not allowed", target, field)
				}
			}
			checkCORS(t, target, got, allowed, s == list)
		}
		for s, lines := range map[*running][]string{list: {other, asks}, off: {app, asks}, all: {app}} {
			if got := s.do(t, "OPTIONS", target, lines...); got.status != 405 || got.header["Access-Control-Allow-Methods"] != nil {
				t.Errorf("%s, %q: %+v", target, lines, got)
			}
		}
	}
}

// A reload applies to the next request of an open connection.
func TestSetDelivery(t *testing.T) {
	s := start(t, catalogOf(t, map[string]string{"a": "one"}), testOptions{})
	for _, allowed := range []string{"", "https://app.example", ""} {
		var origins []string
		if allowed != "" {
			origins = []string{allowed}
		}
		s.SetDelivery(Delivery{Origins: origins})
		checkCORS(t, "reloaded", s.get(t, "/db/a", app), allowed, allowed != "")
	}
}
