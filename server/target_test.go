package server

import (
	"bytes"
	"errors"
	"net/url"
	"strings"
	"testing"

	"sequins/internal/http1"
)

func TestParseTarget(t *testing.T) {
	long := strings.Repeat("k", 64<<10)
	tests := []struct {
		uri, db, key, query string
		route               route
		err                 error
	}{
		{uri: "/", route: routeNode},
		{uri: "/?x=/db/key", route: routeNode, query: "x=/db/key"},
		{uri: "/db", route: routeDB, db: "db"},
		{uri: "/db/", route: routeDB, db: "db"},
		{uri: "/db/?proxy=status", route: routeDB, db: "db", query: "proxy=status"},
		{uri: "/healthz", route: routeHealth, db: "healthz"},
		{uri: "/livez", route: routeLive, db: "livez"},
		{uri: "/readyz?verbose", route: routeReady, db: "readyz", query: "verbose"},
		{uri: "/healthz/", route: routeDB, db: "healthz"},
		{uri: "/healthz/x", db: "healthz", key: "x"},

		{uri: "/db/key", db: "db", key: "key"},
		{uri: "/db/a/b/c", db: "db", key: "a/b/c"},
		{uri: "/db//", db: "db", key: "/"},
		{uri: "/db//a//b/", db: "db", key: "/a//b/"},
		{uri: "/db/..", db: "db", key: ".."},
		{uri: "/db/../../etc/passwd", db: "db", key: "../../etc/passwd"},
		{uri: "/db/./a", db: "db", key: "./a"},
		{uri: "//db/key", route: routeKey, db: "", key: "db/key"},
		{uri: "//", route: routeDB, db: ""},
		{uri: "/db/a+b", db: "db", key: "a+b"},
		{uri: "/db/a%2Bb", db: "db", key: "a+b"},
		{uri: "/db/a%20b", db: "db", key: "a b"},
		{uri: "/db/%2F", db: "db", key: "/"},
		{uri: "/db/%2f%2e%2E", db: "db", key: "/.."},
		{uri: "/db/%252F", db: "db", key: "%2F"},
		{uri: "/db/%00%ff\xfe", db: "db", key: "\x00\xff\xfe"},
		{uri: "/db/a#b", db: "db", key: "a#b"},
		{uri: "/db/a%3Fb?c", db: "db", key: "a?b", query: "c"},
		{uri: "/db/a?b?c", db: "db", key: "a", query: "b?c"},
		{uri: "/db/a;b=c&d\"'", db: "db", key: "a;b=c&d\"'"},
		{uri: "/db/http://x/y", db: "db", key: "http://x/y"},
		{uri: "/%64b/key", db: "db", key: "key"},
		{uri: "/a%2Fb/key", db: "a/b", key: "key"},
		{uri: "/db/" + long, db: "db", key: long},
		{uri: "/db/" + strings.Repeat("%6b", 64<<10), db: "db", key: long},

		{uri: "http://h/db/key?q", db: "db", key: "key", query: "q"},
		{uri: "HTTP://h:80/db//..", db: "db", key: "/.."},
		{uri: "http://h", route: routeNode},
		{uri: "http://h?q", route: routeNode, query: "q"},
		{uri: "http://h/", route: routeNode},

		{uri: "", err: errTarget},
		{uri: "*", err: errTarget},
		{uri: "host:443", err: errTarget},
		{uri: "db/key", err: errTarget},
		{uri: "/db/%", err: http1.ErrEscape},
		{uri: "/db/%4", err: http1.ErrEscape},
		{uri: "/db/%4?1", err: http1.ErrEscape},
		{uri: "/db/%4g", err: http1.ErrEscape},
		{uri: "/db/%G4", err: http1.ErrEscape},
		{uri: "/db/%%41", err: http1.ErrEscape},
		{uri: "/d%b/key", err: http1.ErrEscape},
		{uri: "/d%zz", err: http1.ErrEscape},
		{uri: "/db/" + long + "k", err: errKeyTooLong},
		{uri: "/db/" + long + "%6b", err: errKeyTooLong},
	}
	var buf []byte
	for _, test := range tests {
		before := strings.Clone(test.uri)
		var got target
		var err error
		got, buf, err = parseTarget([]byte(test.uri), buf)
		if !errors.Is(err, test.err) {
			t.Errorf("%.40q: error %v, want %v", test.uri, err, test.err)
			continue
		}
		if err != nil {
			continue
		}
		if got.route != test.route || string(got.db) != test.db || string(got.key) != test.key || string(got.query) != test.query {
			t.Errorf("%.40q: route %d db %q key %.40q query %q", test.uri, got.route, got.db, got.key, got.query)
		}
		if test.uri != before {
			t.Errorf("%.40q was changed", before)
		}
	}
}

// A target has the parameter proxy however its name is written, unless it is empty.
func TestProxyOfTarget(t *testing.T) {
	tests := []struct{ query, want, err string }{
		{"", "", ""},
		{"proxy", "", ""},
		{"proxy=", "", ""},
		{"proxy=true", "true", ""},
		{"proxy=2026-01-31", "2026-01-31", ""},
		{"a=b&proxy=v1&c", "v1", ""},
		{"xproxy=v1", "", ""},
		{"Proxy=v1", "", ""},
		{"proxy=v%31", "v1", ""},
		{"%70roxy=v1", "v1", ""},
		{"&&proxy=a", "a", ""},
		{"proxy=&proxy=a", "a", ""},
		{"proxy=a%2Bb", "a+b", ""},
		{"proxy=a+b=c,d@e:f&x", "a+b=c,d@e:f", ""},
		{"other=%zz", "", ""},
		{"proxy=a&proxy=b", "", "the parameter proxy is repeated"},
		{"proxy=a&%70roxy=a", "", "the parameter proxy is repeated"},
		{"proxy=%", "", `the parameter "proxy": bad percent escape in the request target: % must be followed by two hex digits`},
		{"proxy=" + strings.Repeat("v", 256), "", "the parameter proxy is longer than 255 bytes"},
	}
	for _, test := range tests {
		for _, path := range []string{"/", "/db", "/db/", "/db/key", "/healthz/x"} {
			got, _, err := parseTarget([]byte(path+"?"+test.query), nil)
			text := ""
			if err != nil {
				text = err.Error()
			}
			if string(got.proxy) != test.want || text != test.err {
				t.Errorf("%s?%s: %q, %q; want %q, %q", path, test.query, got.proxy, text, test.want, test.err)
			}
		}
		for _, path := range []string{"/healthz", "/livez", "/readyz", "/-/runbook", "/-/openapi.yaml"} { // no node asks for them
			if got, _, _ := parseTarget([]byte(path+"?"+test.query), nil); len(got.proxy) > 0 {
				t.Errorf("%s?%s: %q", path, test.query, got.proxy)
			}
		}
	}
}

// reference takes a target apart slowly, with the standard library's decoders.
func reference(uri string) (want target, ok bool) {
	if !strings.HasPrefix(uri, "/") {
		_, rest, found := strings.Cut(uri, "://")
		if !found {
			return target{}, false
		}
		end := strings.IndexAny(rest, "/?")
		if end < 0 {
			end = len(rest)
		}
		if uri = rest[end:]; !strings.HasPrefix(uri, "/") {
			uri = "/" + uri
		}
	}
	path, query, _ := strings.Cut(uri, "?")
	want = target{route: routeDB, query: []byte(query)}
	switch path {
	case "/-/runbook":
		return target{route: routeRunbook, query: want.query}, true
	case "/-/openapi.yaml":
		return target{route: routeAPI, query: want.query}, true
	}
	parts := strings.SplitN(path, "/", 3)
	db, err := url.PathUnescape(parts[1])
	if err != nil {
		return target{}, false
	}
	want.db = []byte(db)
	if len(parts) == 2 {
		switch db {
		case "":
			want.route = routeNode
		case "healthz":
			want.route = routeHealth
		case "livez":
			want.route = routeLive
		case "readyz":
			want.route = routeReady
		}
	}
	if len(parts) == 3 && parts[2] != "" {
		key, err := url.PathUnescape(parts[2])
		if err != nil || len(key) > 64<<10 {
			return target{}, false
		}
		want.route, want.key = routeKey, []byte(key)
	}
	if want.route.isProbe() { // load balancers add parameters of their own
		return want, true
	}
	proxy, ok := referenceProxy(query)
	want.proxy = []byte(proxy)
	return want, ok
}

// referenceProxy returns the parameter proxy of a query, whose '+' is the byte itself.
func referenceProxy(query string) (proxy string, ok bool) {
	for pair := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(pair, "=")
		if name, err := url.QueryUnescape(name); err != nil || name != "proxy" {
			continue
		}
		value, err := url.PathUnescape(value)
		if err != nil || len(value) > 255 || value != "" && proxy != "" {
			return "", false
		}
		if value != "" {
			proxy = strings.ReplaceAll(value, " ", "+")
		}
	}
	return proxy, true
}

func FuzzParseTarget(f *testing.F) {
	for _, s := range []string{
		"/", "/db/key", "/db//..//%2F", "http://h/db/a+b?proxy=v", "/db/%00\xff#", "/db/%4", "*", "://x/y", "/d%62/%25%32%35", "//", "x://?a/b",
		"/?proxy=%", "/db/key?a=%&pro%78y=v+1%20", "/db?proxy=a&proxy=b", "/%68ealthz?proxy=%", "/healthz/?proxy=%", "/-/runbook?proxy=%", "/-/runboo%6b",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, uri []byte) {
		before := bytes.Clone(uri)
		dirty := []byte("left from the request before")
		got, _, err := parseTarget(uri, dirty)
		if !bytes.Equal(uri, before) {
			t.Fatalf("%q became %q", before, uri)
		}
		want, ok := reference(string(uri))
		if ok != (err == nil) {
			t.Fatalf("%q: error %v, reference says ok=%v", uri, err, ok)
		}
		if err != nil {
			return
		}
		if got.route != want.route || !bytes.Equal(got.db, want.db) || !bytes.Equal(got.key, want.key) || !bytes.Equal(got.query, want.query) || !bytes.Equal(got.proxy, want.proxy) {
			t.Fatalf("%q: got %d %q %q %q %q, reference %d %q %q %q %q", uri, got.route, got.db, got.key, got.query, got.proxy, want.route, want.db, want.key, want.query, want.proxy)
		}
	})
}
