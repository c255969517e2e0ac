package server

import (
	"strings"
	"testing"

	"sequins/proxy"
	"sequins/test/versions"
	"sequins/version"
)

func TestPrivately(t *testing.T) {
	for field, want := range map[string]string{
		"":                                 "",
		"max-age=60":                       "private, max-age=60",
		"public, max-age=60, s-maxage=600": "private, max-age=60",
		"Public,S-MaxAge=5":                "private",
		"private, no-cache":                "private, no-cache",
		"no-store":                         "no-store",
		"no-cache, proxy-revalidate":       "private, no-cache",
		"public, max-age=60, must-revalidate, stale-if-error=5": "private, max-age=60, must-revalidate, stale-if-error=5",
	} {
		if got := privately(field); got != want {
			t.Errorf("%q: %q, want %q", field, got, want)
		}
	}
}

// Cache-Control of values, of all dbs and of one, on both paths and from peers. Other errors have none.
func TestCacheControl(t *testing.T) {
	set := version.NewSet("own")
	versions.Activate(t, set, versionOf(t, "own", "v1", 1, map[string]string{"a": "one"}))
	c := catalogOf(t, map[string]string{"a": "one"})
	c.sets["own"] = set
	s := start(t, c, testOptions{Delivery: Delivery{
		Caching:   "max-age=60",
		CachingOf: map[string]string{"own": "public, max-age=5"},
	}})
	const sessions = "X-Sequins-At-Least, X-Sequins-Version"
	for _, test := range []struct {
		method, target, line string
		status               int
		want, vary           string
	}{
		{"GET", "/db/a", "", 200, "max-age=60", sessions},
		{"GET", "/db/a?x=y", "", 200, "max-age=60", sessions},
		{"HEAD", "/db/a", "", 200, "max-age=60", sessions},
		{"GET", "/db/a", "If-None-Match: *", 304, "max-age=60", sessions},
		{"GET", "/db/a", "Range: bytes=0-1", 206, "max-age=60", sessions},
		{"GET", "/db/a", "Range: bytes=100-", 416, "", "Accept, " + sessions},
		{"GET", "/db/a", `If-Match: "x"`, 412, "", "Accept, " + sessions},
		{"GET", "/db/absent", "", 404, "", "Accept, " + sessions},
		{"GET", "/own/a", "", 200, "public, max-age=5", sessions},
		{"GET", "/own/absent", "", 404, "", "Accept, " + sessions},
		{"GET", "/own/absent?x=y", "", 404, "", "Accept, " + sessions},
		{"GET", "/own/a", "X-Sequins-At-Least: v2", 503, "", "Accept, " + sessions},
		{"GET", "/nodb/a", "", 404, "", "Accept"},
		{"GET", "/db/%zz", "", 400, "", "Accept"},
		{"GET", "/db?key=a", "", 200, "", "Accept, " + sessions},
		{"GET", "/db?prefix=", "", 200, "", "Accept, " + sessions},
		{"GET", "/db/a?explain", "", 200, "no-store", sessions},
		{"GET", "/", "", 200, "no-store", "Accept"},
		{"GET", "/livez", "", 200, "no-store", ""},
		{"GET", "/db/a?proxy=v1", "", 200, "", ""},
	} {
		var lines []string
		if test.line != "" {
			lines = []string{test.line}
		}
		got := s.do(t, test.method, test.target, lines...)
		if h := got.header; got.status != test.status || h.Get("Cache-Control") != test.want || h.Get("Vary") != test.vary {
			t.Errorf("%s %s %q: %d, Cache-Control %q, Vary %q", test.method, test.target, test.line, got.status, h.Get("Cache-Control"), h.Get("Vary"))
		}
	}
	for status, want := range map[int]string{200: "max-age=60", 404: ""} {
		asker := start(t, away(t), testOptions{
			Delivery: Delivery{Caching: "max-age=60"},
			Proxy:    proxyFunc(func(*proxy.Query) (*proxy.Answer, error) { return response(t, status, "value", proxy.Header{}), nil }),
		})
		if got := asker.get(t, "/db/a"); got.status != status || got.header.Get("Cache-Control") != want {
			t.Errorf("proxied: %+v", got)
		}
	}
}

// With tokens, nothing may be shared, whatever is configured; and what pages may read is not kept by a guess.
func TestPrivateAnswers(t *testing.T) {
	tokens, _ := openTokens(t, tokensFile)
	c := catalogOf(t, map[string]string{"k": "one"})
	for name, test := range map[string]struct {
		d     Delivery
		found string
	}{
		"none":    {Delivery{}, "private"},
		"shared":  {Delivery{Caching: "public, s-maxage=9, max-age=60"}, "private, max-age=60"},
		"origins": {Delivery{Origins: []string{"*"}}, "private, no-cache"},
	} {
		s := start(t, c, testOptions{Tokens: tokens, Delivery: test.d})
		for target, want := range map[string]string{"/db/k": test.found, "/db/k?x=y": test.found, "/db/absent": "private", "/db?key=k": "private", "/db?prefix=": "private", "/": "no-store", "/-/openapi.yaml": "private"} {
			if got := s.get(t, target, "Authorization: Bearer the-token-for-all-of-it"); got.status >= 400 && !strings.Contains(target, "absent") || got.header.Get("Cache-Control") != want {
				t.Errorf("%s: %s: %d %v, want Cache-Control %s", name, target, got.status, got.header, want)
			}
			for status, lines := range map[int][]string{401: nil, 403: {otherToken}} {
				if got := s.get(t, target, lines...); target != "/-/openapi.yaml" && (got.status != status || got.header.Get("Cache-Control") != "no-store") {
					t.Errorf("%s: %s without a right: %d %v", name, target, got.status, got.header)
				}
			}
		}
		if got := s.get(t, "/livez"); got.header.Get("Cache-Control") != "no-store" {
			t.Errorf("/livez: %v", got.header)
		}
	}
	open := start(t, c, testOptions{Delivery: Delivery{Origins: []string{"*"}}})
	if got := open.get(t, "/db/k"); got.header.Get("Cache-Control") != "no-cache" {
		t.Errorf("for pages of other origins: %v", got.header)
	}
}
