package server

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sequins/internal/wire"
	"sequins/test/expect"
	"sequins/version"
)

// errorsOfAllRoutes are requests that fail, on both paths, with the status and the text of each.
var errorsOfAllRoutes = []struct {
	server, method, target, lines string
	status                        int
	text                          string
}{
	{"plain", "GET", "/db/absent", "", 404, "no such key"},
	{"plain", "GET", "/db/absent?x=y", "", 404, "no such key"},
	{"plain", "GET", "/nodb/a", "", 404, "no such db"},
	{"plain", "GET", "/db/%zz", "", 400, "bad percent escape in the request target: % must be followed by two hex digits"},
	{"plain", "GET", "/db/%zz?x=y", "", 400, "bad percent escape in the request target: % must be followed by two hex digits"},
	{"plain", "GET", "/db/" + strings.Repeat("k", 64<<10+1), "", 414, "the key is longer than 65536 bytes"},
	{"plain", "GET", "/db/a", "X: " + strings.Repeat("x", 33<<10), 431, "the request's headers are larger than 32 KiB"},
	{"plain", "PUT", "/db/a", "", 405, "the methods that are allowed are GET, HEAD"},
	{"plain", "DELETE", "/db", "", 405, "the methods that are allowed are GET, HEAD, POST"},
	{"plain", "GET", "/db/a", "Range: bytes=100-", 416, "invalid range: failed to overlap"},
	{"plain", "GET", "/db/a", `If-Match: "x"`, 412, "the value is not the one of the request's condition"},
	{"plain", "GET", "/db/a", "X-Sequins-Version: v0", 412, "the version of X-Sequins-Version cannot be read on this node"},
	{"plain", "GET", "/db/a", "X-Sequins-At-Least: v2", 503, "this node does not serve the version of X-Sequins-At-Least, or of the cursor, yet"},
	{"plain", "GET", "/none/a", "", 503, "no version of this db can be read on this node yet"},
	{"plain", "GET", "/db?key=%zz", "", 400, "the parameter \"key\": bad percent escape in the request target: % must be followed by two hex digits"},
	{"plain", "GET", "/db?key=a&key=a&key=a&key=a", "", 413, "the batch is too large: more than 3 keys"},
	{"plain", "GET", "/db?prefix=&limit=0", "", 400, "limit must be a number from 1 to 9223372036854775807"},
	{"plain", "GET", "/none?prefix=", "", 503, "no version of this db can be read on this node yet"},
	{"plain", "GET", "/none?partitions", "", 503, "no version of this db can be read on this node yet"},
	{"plain", "GET", "/db?diff=v1..v2", "", 501, "this node does not compare versions"},
	{"plain", "GET", "/nodb", "", 404, "no such db"},
	{"plain", "GET", "/readyz?db=%zz", "", 400, "the parameter \"db\": bad percent escape in the request target: % must be followed by two hex digits"},
	{"plain", "GET", "/readyz?db=nodb", "", 503, "not ready: there is no nodb"},
	{"guarded", "GET", "/db/k", "", 401, needsToken},
	{"guarded", "GET", "/db/k", "Authorization: Bearer wrong-token-wrong-token", 401, noToken},
	{"guarded", "GET", "/db/k", otherToken, 403, "the token other may not read this database"},
	{"guarded", "GET", "/", "", 401, needsToken},
	{"guarded", "GET", "/-/openapi.yaml", "", 401, needsToken},
	{"guarded", "GET", "/readyz?db=db", "", 401, needsToken},
	{"alone", "GET", "/db/a", "", 500, "the block of this key cannot be read"},
}

// Errors are one line of text, and a problem in JSON for clients that prefer that, with the same status and header.
func TestProblems(t *testing.T) {
	c := catalogOf(t, map[string]string{"a": "value"})
	c.sets["none"] = version.NewSet("none")
	guarded, _ := guarded(t, testOptions{})
	servers := map[string]*running{"plain": start(t, c, testOptions{MaxBatchKeys: 3}), "guarded": guarded, "alone": start(t, away(t), testOptions{Logger: slog.New(slog.DiscardHandler)})}
	accepts := map[string]string{
		"": "", "*/*": "", "text/html,*/*;q=0.8": "", "application/octet-stream": "", "text/plain, application/json;q=0.9": "",
		"application/json":                                       "application/json",
		"application/json, text/plain, */*":                      "application/json",
		"application/problem+json":                               "application/problem+json",
		"application/json;q=0.5, application/problem+json;q=0.6": "application/problem+json",
		"application/*":                                          "application/problem+json",
	}
	for _, e := range errorsOfAllRoutes {
		for accept, media := range accepts {
			lines := strings.Split(strings.Trim(e.lines+"\n"+"Accept: "+accept, "\n"), "\n")
			if strings.HasPrefix(accept, "text/html") && e.text == needsToken && e.target == "/" {
				continue // the page that asks for a token
			}
			got := servers[e.server].do(t, e.method, e.target, lines...)
			what := e.method + " " + e.target[:min(len(e.target), 40)] + ", Accept: " + accept
			want := e.text + "\n"
			if media == "" {
				media = plainText
			} else {
				b, err := json.Marshal(map[string]any{"type": "about:blank", "title": http.StatusText(e.status), "status": e.status, "detail": e.text})
				expect.NoError(t, err)
				var wanted, had any
				if json.Unmarshal(b, &wanted); json.Unmarshal([]byte(got.body), &had) != nil || !cmp.Equal(wanted, had) || !strings.HasSuffix(got.body, "}\n") {
					t.Errorf("%s: %q", what, got.body)
				}
				want = got.body
			}
			if got.status != e.status || got.body != want || got.header.Get("Content-Type") != media || got.length != int64(len(want)) {
				t.Errorf("%s: %d %v %.200q, want %d %q in %s", what, got.status, got.header, got.body, e.status, e.text, media)
			}
			varies := "Accept"
			if got.header.Get(wire.Version) != "" {
				varies += ", " + wire.AtLeast + ", " + wire.Version
			}
			if h := got.header; h.Get("Vary") != varies || h.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%s: %v", what, h)
			}
			// HEAD has no ranges, and net/http refuses what it cannot parse.
			if e.method == "GET" && e.status != 416 && !strings.Contains(e.target, "/%zz") {
				if head := servers[e.server].do(t, "HEAD", e.target, lines...); head.status != got.status || head.header.Get("Content-Type") != media || head.length != got.length {
					t.Errorf("HEAD of %s: %+v", what, head)
				}
			}
		}
	}
}

// Other nodes, also of older releases, get text.
func TestPeersGetText(t *testing.T) {
	s := start(t, catalogOf(t, map[string]string{"a": "value"}), testOptions{})
	for _, target := range []string{"/db/absent?proxy=v1", "/db/a?proxy=v0", "/nodb?proxy=true"} {
		if got := s.get(t, target, "Accept: application/json"); got.status < 400 || got.header.Get("Content-Type") != plainText || got.header["Vary"] != nil {
			t.Errorf("%s: %+v", target, got)
		}
	}
}
