package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sequins/metrics"
	"sequins/version"
)

// A request of a peer gets the version that it names, or 501; it is never
// passed on.
func TestProxiedRequests(t *testing.T) {
	set := version.NewSet("db")
	activate(t, set, versionOf(t, "db", "v2", 1, map[string]string{"k": "current"}))
	old := versionOf(t, "db", "v1", 1, map[string]string{"k": "old"})
	next := versionOf(t, "db", "v3", 1, map[string]string{"k": "next"})
	for _, v := range []*version.Version{old, next} {
		if err := set.Prepare(v); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { closeVersion(t, set.Remove(v.Info().Name)) })
	}
	away := version.NewSet("away")
	activate(t, away, version.New(version.Info{DB: "away", Name: "v1", Partitions: 1, Cluster: peersOnly{peers: []string{"p:1"}}}))
	c := &catalog{sets: map[string]*version.Set{"db": set, "away": away, "none": version.NewSet("none")}}
	s := start(t, c, Options{Proxy: proxyFunc(func(proxyCall) (*http.Response, string, error) {
		t.Error("a proxied request was proxied on")
		return nil, "", errors.New("no")
	})})
	tests := []struct {
		target  string
		status  int
		version string
		body    string
	}{
		{"/db/k", 200, "v2", "current"},
		{"/db/k?proxy=", 200, "v2", "current"},
		{"/db/k?proxy=true", 200, "v2", "current"},
		{"/db/k?proxy=v1", 200, "v1", "old"},
		{"/db/k?proxy=v3", 200, "v3", "next"},
		{"/db/k?x=y&proxy=v%33", 200, "v3", "next"},
		{"/db/k", 200, "v2", "current"},
		{"/db/none?proxy=v1", 404, "v1", "no such key\n"},
		{"/db/k?proxy=v4", 501, "", "the db or the version is not here\n"},
		{"/nodb/k?proxy=v1", 501, "", "the db or the version is not here\n"},
		{"/none/k?proxy=true", 501, "", "the db or the version is not here\n"},
		{"/away/k?proxy=v1", 501, "v1", "this key's partition is not here\n"},
		{"/away/k?proxy=true", 501, "v1", "this key's partition is not here\n"},
	}
	for _, test := range tests {
		got := s.get(t, test.target)
		if got.status != test.status || got.header.Get("X-Sequins-Version") != test.version || got.body != test.body {
			t.Errorf("%s: %+v", test.target, got)
		}
	}
}

type proxyCall struct {
	ctx                   context.Context
	peers                 []string
	version, method, path string
	header                http.Header
}

// proxyFunc is a Proxy of one function.
type proxyFunc func(proxyCall) (*http.Response, string, error)

func (f proxyFunc) Fetch(ctx context.Context, peers []string, version, method, path string, header http.Header) (*http.Response, string, error) {
	return f(proxyCall{ctx, peers, version, method, path, header})
}

// away is a catalogue with a db whose partitions are all on other nodes.
func away(t *testing.T) *catalog {
	set := version.NewSet("db")
	activate(t, set, version.New(version.Info{DB: "db", Name: "v1", Partitions: 4, LastModified: modified, Cluster: peersOnly{peers: []string{"p:1", "q:2"}}}))
	return &catalog{sets: map[string]*version.Set{"db": set}}
}

// response makes a peer's answer.
func response(status int, body string, header ...string) *http.Response {
	h := http.Header{"X-Sequins-Version": {"v1"}, "Connection": {"close"}, "Set-Cookie": {"a=b"}}
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		h.Set(name, value)
	}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body))}
}

func TestPeersAnswer(t *testing.T) {
	large := noise(1, 1<<20)
	tests := []struct {
		method string
		resp   *http.Response
		body   string
		header http.Header
	}{
		{"GET", response(200, "value", `Etag: "e"`, "Last-Modified: x", "Content-Type: text/y", "Accept-Ranges: bytes"), "value",
			http.Header{"Etag": {`"e"`}, "Last-Modified": {"x"}, "Content-Type": {"text/y"}, "Accept-Ranges": {"bytes"}, "Content-Length": {"5"}}},
		{"GET", response(200, large), large, http.Header{"Content-Length": {fmt.Sprint(1 << 20)}}},
		{"GET", response(200, ""), "", http.Header{"Content-Length": {"0"}}},
		{"GET", response(206, "al", "Content-Range: bytes 1-2/5"), "al", http.Header{"Content-Range": {"bytes 1-2/5"}, "Content-Length": {"2"}}},
		{"GET", response(404, "whatever"), "no such key\n", http.Header{"Content-Type": {"text/plain; charset=utf-8"}, "Content-Length": {"12"}}},
		{"GET", response(304, "", `Etag: "e"`), "", http.Header{"Etag": {`"e"`}}},
		{"HEAD", response(200, "value"), "", http.Header{"Content-Length": {"5"}}},
	}
	for _, test := range tests {
		var call proxyCall
		s := start(t, away(t), Options{Proxy: proxyFunc(func(c proxyCall) (*http.Response, string, error) {
			call = c
			return test.resp, "q:2", nil
		})})
		got := s.do(t, test.method, "/db/a%2Fb//?x=y", "Range: bytes=1-2", "If-None-Match: \"a\"", `If-None-Match: "b"`, "Cookie: secret", "If-X: y")
		test.header.Set("X-Sequins-Version", "v1")
		test.header.Set("X-Sequins-Proxied-To", "q:2")
		got.header.Del("Date")
		if got.status != test.resp.StatusCode || got.body != test.body {
			t.Errorf("%d: %d, %d bytes", test.resp.StatusCode, got.status, len(got.body))
		}
		if diff := cmp.Diff(test.header, got.header); diff != "" {
			t.Errorf("%d (-want +got):\n%s", test.resp.StatusCode, diff)
		}
		want := http.Header{"Range": {"bytes=1-2"}, "If-None-Match": {`"a", "b"`}}
		if call.version != "v1" || call.method != test.method || call.path != "/db/a%2Fb//" || cmp.Diff([]string{"p:1", "q:2"}, call.peers) != "" {
			t.Errorf("asked %+v", call)
		}
		if diff := cmp.Diff(want, call.header); diff != "" {
			t.Errorf("headers of the request (-want +got):\n%s", diff)
		}
	}
}

func TestPeersFail(t *testing.T) {
	failing := func(err error) proxyFunc {
		return func(proxyCall) (*http.Response, string, error) { return nil, "", err }
	}
	answering := func(resp *http.Response) proxyFunc {
		return func(proxyCall) (*http.Response, string, error) { return resp, "p:1", nil }
	}
	endless := response(200, "value")
	endless.ContentLength = -1
	tests := map[string]struct {
		proxy  Proxy
		status int
	}{
		"none":             {nil, 502},
		"all fail":         {failing(errors.New("connection refused")), 502},
		"all time out":     {failing(fmt.Errorf("peers: %w", context.DeadlineExceeded)), 504},
		"given up":         {failing(fmt.Errorf("peers: %w", context.Canceled)), 499},
		"another version":  {answering(response(200, "value", "X-Sequins-Version: v0")), 502},
		"no version":       {answering(response(404, "", "X-Sequins-Version: ")), 502},
		"an error":         {answering(response(500, "")), 502},
		"a redirect":       {answering(response(302, "")), 502},
		"no length":        {answering(endless), 502},
		"not even a proxy": {proxyFunc(nil), 500},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := start(t, away(t), Options{Proxy: test.proxy})
			got := s.get(t, "/db/k")
			if got.status != test.status || !strings.HasSuffix(got.body, "\n") || got.header.Get("X-Sequins-Proxied-To") != "" {
				t.Errorf("%+v", got)
			}
			if want := "v1"; test.status != 500 && got.header.Get("X-Sequins-Version") != want {
				t.Errorf("version %q", got.header.Get("X-Sequins-Version"))
			}
		})
	}
}

// A peer that breaks off leaves its client with less than was promised.
func TestPeerBreaksOff(t *testing.T) {
	resp := response(200, "")
	resp.ContentLength = 1 << 20
	resp.Body = io.NopCloser(io.MultiReader(strings.NewReader(noise(1, 300<<10)), &broken{}))
	m := metrics.New()
	s := start(t, away(t), Options{Metrics: m.Server, Proxy: proxyFunc(func(proxyCall) (*http.Response, string, error) { return resp, "p:1", nil })})
	_, got := startLarge(t, s, "/db/k")
	body, err := io.ReadAll(got.Body)
	if !errors.Is(err, io.ErrUnexpectedEOF) || len(body) > 300<<10 {
		t.Errorf("%d bytes, %v", len(body), err)
	}
	eventually(t, "the request to be counted", func() bool { return m.Server.Vars().Requests["502"] == 1 })
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("reset by peer") }

// A block that cannot be read is asked for elsewhere; 500 where nobody has it.
func TestDamageWithPeers(t *testing.T) {
	for _, helpful := range []bool{true, false} {
		value := noise(1, 1000)
		info := version.Info{DB: "db", Name: "v1", Partitions: 1, LastModified: modified, Cluster: peersOnly{peers: []string{"p:1"}}}
		set := damagedOf(t, info, map[string]string{"k": value}, value[100:200])
		s := start(t, &catalog{sets: map[string]*version.Set{"db": set}}, Options{Proxy: proxyFunc(func(proxyCall) (*http.Response, string, error) {
			if helpful {
				return response(200, value), "p:1", nil
			}
			return nil, "", errors.New("connection refused")
		})})
		got := s.get(t, "/db/k")
		if helpful && (got.status != 200 || got.body != value || got.header.Get("X-Sequins-Proxied-To") != "p:1") {
			t.Errorf("%+v", got)
		}
		if !helpful && got.status != 500 {
			t.Errorf("%+v", got)
		}
		if got := s.get(t, "/db/k?proxy=v1"); got.status != 500 {
			t.Errorf("asked by a peer: %+v", got)
		}
	}
}
