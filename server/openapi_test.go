package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"

	"sequins/internal/names"
	"sequins/observe/status"
	"sequins/proxy"
	"sequins/test/expect"
	"sequins/test/versions"
	"sequins/version"
)

// documented are requests to several servers, of which each response of the description is one.
var documented = []struct {
	server, method, path, target string // path is that of the description
	headers, body                string
	status                       int
}{
	{"plain", "GET", "/{db}/{key}", "/db/a", "", "", 200},
	{"plain", "GET", "/{db}/{key}", "/db/a//b?explain", "", "", 200},
	{"plain", "GET", "/{db}/{key}", "/db/a", "Range: bytes=1-", "", 206},
	{"plain", "GET", "/{db}/{key}", "/db/a", "If-None-Match: *", "", 304},
	{"web", "GET", "/{db}/{key}", "/db/a", webHeaders, "", 200},
	{"web", "GET", "/{db}/{key}", "/db/a", "If-None-Match: *", "", 304},
	{"web", "GET", "/{db}/{key}", "/db/absent", webHeaders, "", 404},
	{"plain", "GET", "/{db}/{key}", "/db/%zz", "", "", 400},
	{"guarded", "GET", "/{db}/{key}", "/db/k", "", "", 401},
	{"guarded", "GET", "/{db}/{key}", "/db/k", otherToken, "", 403},
	{"plain", "GET", "/{db}/{key}", "/db/absent", "", "", 404},
	{"plain", "GET", "/{db}/{key}", "/nodb/a", "", "", 404},
	{"plain", "GET", "/{db}/{key}", "/db/a", "X-Sequins-Version: v0", "", 412},
	{"plain", "GET", "/{db}/{key}", "/db/a", `If-Match: "x"`, "", 412},
	{"plain", "GET", "/{db}/{key}", "/db/" + strings.Repeat("k", 64<<10+1), "", "", 414},
	{"plain", "GET", "/{db}/{key}", "/db/a", "Range: bytes=100-", "", 416},
	{"plain", "GET", "/{db}/{key}", "/db/a", "X: " + strings.Repeat("x", 33<<10), "", 431},
	{"alone", "GET", "/{db}/{key}", "/db/a", "", "", 500},
	{"plain", "GET", "/{db}/{key}", "/db/a?proxy=v0", "", "", 501},
	{"unreachable", "GET", "/{db}/{key}", "/db/a", "", "", 502},
	{"plain", "GET", "/{db}/{key}", "/none/a", "", "", 503},
	{"plain", "GET", "/{db}/{key}", "/db/a", "X-Sequins-At-Least: v2", "", 503},
	{"late", "GET", "/{db}/{key}", "/db/a", "", "", 504},

	{"plain", "HEAD", "/{db}/{key}", "/db/a", "", "", 200},
	{"web", "HEAD", "/{db}/{key}", "/db/a", webHeaders, "", 200},
	{"plain", "HEAD", "/{db}/{key}", "/db/a", "If-None-Match: *", "", 304},
	{"plain", "HEAD", "/{db}/{key}", "/db/%zz", "", "", 400},
	{"guarded", "HEAD", "/{db}/{key}", "/db/k", "", "", 401},
	{"guarded", "HEAD", "/{db}/{key}", "/db/k", otherToken, "", 403},
	{"plain", "HEAD", "/{db}/{key}", "/db/absent", "", "", 404},
	{"plain", "HEAD", "/{db}/{key}", "/db/a", `If-Match: "x"`, "", 412},
	{"plain", "HEAD", "/{db}/{key}", "/db/" + strings.Repeat("k", 64<<10+1), "", "", 414},
	{"plain", "HEAD", "/{db}/{key}", "/db/a", "X: " + strings.Repeat("x", 33<<10), "", 431},
	{"alone", "HEAD", "/{db}/{key}", "/db/a", "", "", 500},
	{"plain", "HEAD", "/{db}/{key}", "/db/a?proxy=v0", "", "", 501},
	{"unreachable", "HEAD", "/{db}/{key}", "/db/a", "", "", 502},
	{"plain", "HEAD", "/{db}/{key}", "/none/a", "", "", 503},
	{"late", "HEAD", "/{db}/{key}", "/db/a", "", "", 504},
	{"web", "OPTIONS", "/{db}/{key}", "/db/a", webHeaders + "\nAccess-Control-Request-Method: GET", "", 204},
	{"plain", "OPTIONS", "/{db}/{key}", "/db/a", webHeaders + "\nAccess-Control-Request-Method: GET", "", 405},

	{"plain", "GET", "/{db}", "/db", "", "", 200},
	{"plain", "GET", "/{db}", "/db", "Accept: text/html", "", 200},
	{"plain", "GET", "/{db}", "/db?partitions", "", "", 200},
	{"plain", "GET", "/{db}", "/db?key=a&key=absent&key=%ff", "", "", 200},
	{"plain", "GET", "/{db}", "/db?key=a", "Accept: application/x-ndjson", "", 200},
	{"plain", "GET", "/{db}", "/db?key=a", "Accept: application/octet-stream", "", 200},
	{"plain", "GET", "/{db}", "/db?prefix=a&start=a&end=b&limit=1", "", "", 200},
	{"plain", "GET", "/{db}", "/db?start=&keys_only", "Accept: application/octet-stream", "", 200},
	{"plain", "GET", "/{db}", "/db?count&prefix=a", "", "", 200},
	{"plain", "GET", "/{db}", "/db?key=%zz", "", "", 400},
	{"plain", "GET", "/{db}", "/db?key", "", "", 400},
	{"plain", "GET", "/{db}", "/db?prefix=a&limit=0", "", "", 400},
	{"plain", "GET", "/{db}", "/db?prefx=a", "", "", 400},
	{"plain", "GET", "/{db}", "/db?start=&after=EXPIRED", "", "", 410},
	{"guarded", "GET", "/{db}", "/db", "", "", 401},
	{"guarded", "GET", "/{db}", "/db", asksHTML, "", 401},
	{"guarded", "GET", "/{db}", "/db?key=k", otherToken, "", 403},
	{"plain", "GET", "/{db}", "/nodb", "", "", 404},
	{"plain", "GET", "/{db}", "/db?partitions", "X-Sequins-Version: v0", "", 412},
	{"plain", "GET", "/{db}", "/db?key=a&key=a&key=a&key=a", "", "", 413},
	{"plain", "GET", "/{db}", "/db?key=a", "X: " + strings.Repeat("x", 33<<10), "", 431},
	{"alone", "GET", "/{db}", "/db?key=a", "", "", 500},
	{"plain", "GET", "/{db}", "/db?diff=v1..v2", "", "", 501},
	{"unreachable", "GET", "/{db}", "/db?prefix=", "", "", 502},
	{"late", "GET", "/{db}", "/db?key=a", "", "", 504},
	{"plain", "GET", "/{db}", "/none?partitions", "", "", 503},
	{"plain", "GET", "/{db}", "/none?partitions", "Accept: application/problem+json", "", 503},
	{"web", "OPTIONS", "/{db}", "/db", webHeaders + "\nAccess-Control-Request-Method: POST", "", 204},
	{"web", "OPTIONS", "/{db}", "/db", "Accept: application/json", "", 405},

	{"plain", "POST", "/{db}", "/db", "", `{"keys":["a","absent",{"base64":"/w=="}]}`, 200},
	{"plain", "POST", "/{db}", "/db", "Accept: application/x-ndjson", `{"keys":["a"]}`, 200},
	{"plain", "POST", "/{db}", "/db", "Accept: application/octet-stream\nContent-Type: application/octet-stream", "\x00\x00\x00\x01a", 200},
	{"plain", "POST", "/{db}", "/db", "", `{"keys":["a"`, 400},
	{"guarded", "POST", "/{db}", "/db", "", `{"keys":["a"]}`, 401},
	{"guarded", "POST", "/{db}", "/db", otherToken, `{"keys":["a"]}`, 403},
	{"plain", "POST", "/{db}", "/nodb", "", `{"keys":["a"]}`, 404},
	{"plain", "POST", "/{db}", "/db", "X-Sequins-Version: v0", `{"keys":["a"]}`, 412},
	{"plain", "POST", "/{db}", "/db", "", `{"keys":["a","a","a","a"]}`, 413},
	{"plain", "POST", "/{db}", "/db", "Content-Encoding: gzip", `{"keys":["a"]}`, 415},
	{"plain", "POST", "/{db}", "/db", "X: " + strings.Repeat("x", 33<<10), `{"keys":["a"]}`, 431},
	{"alone", "POST", "/{db}", "/db", "", `{"keys":["a"]}`, 500},
	{"plain", "POST", "/{db}", "/db?proxy=v0", "", `{"keys":["a"]}`, 501},
	{"unreachable", "POST", "/{db}", "/db", "", `{"keys":["a"]}`, 502},
	{"plain", "POST", "/{db}", "/none", "", `{"keys":["a"]}`, 503},
	{"late", "POST", "/{db}", "/db", "", `{"keys":["a"]}`, 504},

	{"plain", "GET", "/", "/", "", "", 200},
	{"plain", "GET", "/", "/", asksHTML, "", 200},
	{"guarded", "GET", "/", "/", "", "", 401},
	{"guarded", "GET", "/", "/", asksHTML, "", 401},
	{"guarded", "GET", "/", "/", webToken, "", 403},
	{"guarded", "GET", "/", "/", webToken + "\nAccept: application/json", "", 403},
	{"web", "OPTIONS", "/", "/", webHeaders + "\nAccess-Control-Request-Method: GET", "", 204},
	{"web", "OPTIONS", "/", "/", "", "", 204},
	{"plain", "OPTIONS", "/", "/", webHeaders, "", 405},
	{"guarded", "OPTIONS", "/", "/", "", "", 503},
	{"plain", "GET", "/-/openapi.yaml", "/-/openapi.yaml", "", "", 200},
	{"guarded", "GET", "/-/openapi.yaml", "/-/openapi.yaml", webToken, "", 200},
	{"guarded", "GET", "/-/openapi.yaml", "/-/openapi.yaml", asksHTML, "", 401},

	{"plain", "GET", "/healthz", "/healthz", "", "", 200},
	{"alone", "GET", "/healthz", "/healthz", "", "", 404},
	{"guarded", "GET", "/healthz", "/healthz", "", "", 200},
	{"plain", "GET", "/livez", "/livez", "", "", 200},
	{"plain", "GET", "/readyz", "/readyz?db=db", "", "", 200},
	{"plain", "GET", "/readyz", "/readyz?db=%zz", "", "", 400},
	{"guarded", "GET", "/readyz", "/readyz?db=db", "", "", 401},
	{"guarded", "GET", "/readyz", "/readyz?db=db", otherToken, "", 403},
	{"plain", "GET", "/readyz", "/readyz?db=nodb", "", "", 503},
}

// webHeaders are those of a page of another origin.
const webHeaders = "Origin: https://app.example\nAccept: application/json\nAccept-Encoding: gzip"

// The server describes itself, under a name that no db has.
func TestDescriptionIsServed(t *testing.T) {
	want, err := os.ReadFile("../docs/openapi.yaml")
	expect.NoError(t, err)
	s := start(t, catalogOf(t, nil), testOptions{})
	if got := s.get(t, "/-/openapi.yaml"); got.body != string(want) || got.header.Get("Content-Type") != "application/yaml" {
		t.Errorf("%d bytes, %v", len(got.body), got.header)
	}
	if got := s.get(t, "/"); got.header.Get("Link") != `</-/openapi.yaml>; rel="service-desc"; type="application/yaml"` {
		t.Errorf("%v", got.header)
	}
	if names.ValidDatabase("-") {
		t.Error("a db may be called -")
	}
}

// The description of the interface is valid, each request of the table has a response as described, and each response that is
// described is that of a request.
func TestOpenAPI(t *testing.T) {
	for _, text := range []string{"text/html", "application/x-ndjson", "application/yaml"} {
		openapi3filter.RegisterBodyDecoder(text, openapi3filter.FileBodyDecoder)
	}
	loader := openapi3.NewLoader()
	doc, err := loader.LoadFromFile("../docs/openapi.yaml")
	expect.NoError(t, err)
	expect.NoError(t, doc.Validate(context.Background()))
	servers, expired := documentedServers(t), expiredCursor(t)
	seen := map[string]bool{}
	for _, d := range documented {
		name := fmt.Sprintf("%s %.40s of %s with %.40q %.40q", d.method, d.target, d.server, d.headers, d.body)
		item := doc.Paths.Value(d.path)
		if item == nil || item.GetOperation(d.method) == nil {
			t.Errorf("%s is not described", name)
			continue
		}
		got := servers[d.server].describedRequest(t, d.method, strings.Replace(d.target, "EXPIRED", expired, 1), d.headers, d.body)
		if got.status != d.status {
			t.Errorf("%s: %d %q, want %d", name, got.status, got.body, d.status)
		}
		seen[fmt.Sprintf("%s %s %d", d.method, d.path, got.status)] = true
		if err := checkDescribed(doc, item, d.path, d.method, got); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			for _, code := range slices.Sorted(maps.Keys(op.Responses.Map())) {
				if !seen[method+" "+path+" "+code] {
					t.Errorf("no request has the response %s of %s %s", code, method, path)
				}
			}
		}
	}
}

// checkDescribed compares a response with its description: status, media type, header fields, and the body with its schema.
func checkDescribed(doc *openapi3.T, item *openapi3.PathItem, path, method string, got answer) error {
	req, err := http.NewRequest(method, "http://localhost/", nil)
	if err != nil {
		return err
	}
	route := &routers.Route{Spec: doc, Path: path, PathItem: item, Method: method, Operation: item.GetOperation(method)}
	return openapi3filter.ValidateResponse(context.Background(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: req, Route: route},
		Status:                 got.status, Header: got.header, Body: io.NopCloser(strings.NewReader(got.body)),
		Options: &openapi3filter.Options{IncludeResponseStatus: true, ExcludeResponseBody: method == http.MethodHead || got.status == http.StatusNotModified},
	})
}

// describedRequest sends a request with header lines, and a body if there is one.
func (s *running) describedRequest(t *testing.T, method, target, headers, body string) answer {
	t.Helper()
	lines := strings.Split(headers, "\n")
	if headers == "" {
		lines = nil
	}
	if method == http.MethodPost {
		return s.postBody(t, target, body, lines...)
	}
	return s.do(t, method, target, lines...)
}

// expiredCursor is a cursor of a version that the servers do not have.
func expiredCursor(t *testing.T) string {
	set := version.NewSet("db")
	versions.Activate(t, set, versionOf(t, "db", "v0", 1, map[string]string{"a": "1", "b": "2"}))
	s := start(t, &catalog{sets: map[string]*version.Set{"db": set}}, testOptions{})
	lines := strings.Split(strings.TrimSpace(s.get(t, "/db?start=&limit=1").body), "\n")
	var end struct{ Cursor string }
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &end); err != nil || end.Cursor == "" {
		t.Fatalf("%q: %v", lines, err)
	}
	return end.Cursor
}

// documentedServers are a server with a db, one with tokens, and three whose partitions are lost, unreachable and late.
func documentedServers(t *testing.T) map[string]*running {
	c := catalogOf(t, map[string]string{"a": "value", "a//b": "other", "\xff": "\xfe"})
	c.sets["none"] = version.NewSet("none")
	c.state = status.Status{Node: "me", DBs: map[string]status.DB{"db": {Versions: map[string]status.Version{
		"v1": {Path: "/the/path", NumPartitions: 2, Nodes: map[string]status.OnNode{"me": {Name: "me", State: status.Active, Current: true, Partitions: []int{0, 1}}}},
	}}}}
	s, _ := guarded(t, testOptions{})
	quiet := slog.New(slog.DiscardHandler)
	failing := func(err error) testOptions {
		return testOptions{Logger: quiet, Proxy: proxyFunc(func(*proxy.Query) (*proxy.Answer, error) { return nil, err })}
	}
	web := Delivery{Origins: []string{"https://app.example"}, Codings: []string{"gzip"}, Caching: "max-age=60"}
	return map[string]*running{
		"web":   start(t, c, testOptions{Delivery: web}),
		"plain": start(t, c, testOptions{MaxBatchKeys: 3, Logger: quiet}), "guarded": s, "alone": start(t, away(t), testOptions{Logger: quiet}),
		"unreachable": start(t, away(t), failing(errors.Join(proxy.ErrNoPeers))),
		"late":        start(t, away(t), failing(fmt.Errorf("asking: %w", context.DeadlineExceeded))),
	}
}
