package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sequins/observe/metrics"
	"sequins/proxy"
	"sequins/reads"
	"sequins/test/contents"
	"sequins/test/expect"
	"sequins/test/versions"
	"sequins/version"
)

// A request of a peer gets the version that it names, or 501; it is never
// passed on.
func TestProxiedRequests(t *testing.T) {
	set := version.NewSet("db")
	versions.Activate(t, set, versionOf(t, "db", "v2", 1, map[string]string{"k": "current"}))
	old := versionOf(t, "db", "v1", 1, map[string]string{"k": "old"})
	next := versionOf(t, "db", "v3", 1, map[string]string{"k": "next"})
	for _, v := range []*version.Version{old, next} {
		set.Prepare(v)
		t.Cleanup(func() { closeVersion(t, set.Remove(v.Input)) })
	}
	away := version.NewSet("away")
	versions.Activate(t, away, version.New(version.Info{DB: "away", Content: contents.Of("v1"), Partitions: 1, Following: peersOnly{peers: []string{"p:1"}}}))
	c := &catalog{sets: map[string]*version.Set{"db": set, "away": away, "none": version.NewSet("none")}}
	s := start(t, c, testOptions{Proxy: proxyFunc(func(*proxy.Query) (*proxy.Answer, error) {
		t.Error("a proxied request was proxied on")
		return nil, errors.New("no")
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
		{"/none/k", 503, "", "no version of this db can be read on this node yet\n"}, // others may serve it
		{"/nodb/k", 404, "", "no such db\n"},
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

// proxyFunc is a Proxy of one function.
type proxyFunc func(q *proxy.Query) (*proxy.Answer, error)

func (f proxyFunc) Fetch(_ context.Context, q *proxy.Query) (*proxy.Answer, error) { return f(q) }

// away is a catalogue with a db whose partitions are all on other nodes.
func away(t *testing.T) *catalog {
	set := version.NewSet("db")
	versions.Activate(t, set, version.New(version.Info{DB: "db", Content: contents.Of("v1"), Partitions: 4, LastModified: modified, Following: peersOnly{peers: []string{"p:1", "q:2"}}}))
	return &catalog{sets: map[string]*version.Set{"db": set}}
}

// response makes a peer's answer. It fails if it is not closed.
func response(t *testing.T, status int, body string, header proxy.Header) *proxy.Answer {
	closed := new(atomic.Bool)
	t.Cleanup(func() { expect.Eventually(t, "the answer to be closed", closed.Load) })
	return &proxy.Answer{Peer: "q:2", Status: status, Length: int64(len(body)), Header: header, Body: &peersBody{strings.NewReader(body), closed}}
}

type peersBody struct {
	io.Reader
	closed *atomic.Bool
}

func (b *peersBody) Close() error { b.closed.Store(true); return nil }

func TestPeersAnswer(t *testing.T) {
	large := noise(1, 1<<20)
	small := response(t, 200, "here", proxy.Header{})
	small.Value = []byte("here")
	tests := []struct {
		method string
		answer *proxy.Answer
		body   string
		header http.Header
	}{
		{"GET", response(t, 200, "value", proxy.Header{ETag: []byte(`"e"`), LastModified: []byte("x"), ContentType: []byte("text/y"), AcceptRanges: []byte("bytes")}), "value",
			http.Header{"Etag": {`"e"`}, "Last-Modified": {"x"}, "Content-Type": {"text/y"}, "Accept-Ranges": {"bytes"}, "Content-Length": {"5"}}},
		{"GET", small, "here", http.Header{"Content-Length": {"4"}}},
		{"GET", response(t, 200, large, proxy.Header{}), large, http.Header{"Content-Length": {fmt.Sprint(1 << 20)}}},
		{"GET", response(t, 200, "", proxy.Header{}), "", http.Header{"Content-Length": {"0"}}},
		{"GET", response(t, 206, "al", proxy.Header{ContentRange: []byte("bytes 1-2/5")}), "al", http.Header{"Content-Range": {"bytes 1-2/5"}, "Content-Length": {"2"}}},
		{"GET", response(t, 404, "whatever", proxy.Header{}), "no such key\n", http.Header{"Content-Type": {"text/plain; charset=utf-8"}, "Content-Length": {"12"}}},
		{"GET", response(t, 304, "", proxy.Header{ETag: []byte(`"e"`)}), "", http.Header{"Etag": {`"e"`}}},
		{"HEAD", response(t, 200, "value", proxy.Header{}), "", http.Header{"Content-Length": {"5"}}},
	}
	for _, test := range tests {
		var asked proxy.Query
		s := start(t, away(t), testOptions{Proxy: proxyFunc(func(q *proxy.Query) (*proxy.Answer, error) {
			asked = *q
			asked.Path, asked.Fields = bytes.Clone(q.Path), nil
			for _, f := range q.Fields {
				asked.Fields = append(asked.Fields, proxy.Field{Name: f.Name, Value: bytes.Clone(f.Value)})
			}
			return test.answer, nil
		})})
		got := s.do(t, test.method, "/db/a%2Fb//?x=y", "Range: bytes=1-2", "If-None-Match: \"a\"", `if-none-match: "b"`, "Cookie: secret", "If-X: y", "authorization: Bearer abc",
			"traceparent: 00-1-2-01", "tracestate: a=1", "tracestate: b=2")
		test.header.Set("X-Content-Type-Options", "nosniff")
		test.header.Set("Vary", "X-Sequins-At-Least, X-Sequins-Version")
		if test.answer.Status == 404 {
			test.header.Set("Vary", "Accept, X-Sequins-At-Least, X-Sequins-Version") // an error can be JSON
		}
		test.header.Set("X-Sequins-Version", "v1")
		test.header.Set("X-Sequins-Proxied-To", "q:2")
		got.header.Del("Date")
		if got.status != test.answer.Status || got.body != test.body {
			t.Errorf("%d: %d, %d bytes", test.answer.Status, got.status, len(got.body))
		}
		if diff := cmp.Diff(test.header, got.header); diff != "" {
			t.Errorf("%d (-want +got):\n%s", test.answer.Status, diff)
		}
		want := proxy.Query{Peers: []string{"p:1", "q:2"}, Head: test.method == "HEAD", Path: []byte("/db/a/b//"), Version: "v1", Content: []byte(contents.Of("v1").Code()), Fields: []proxy.Field{
			{Name: "If-None-Match", Value: []byte(`"a"`)}, {Name: "If-None-Match", Value: []byte(`"b"`)}, {Name: "Range", Value: []byte("bytes=1-2")},
			{Name: "Traceparent", Value: []byte("00-1-2-01")}, {Name: "Tracestate", Value: []byte("a=1,b=2")},
		}}
		if diff := cmp.Diff(want, asked); diff != "" {
			t.Errorf("asked (-want +got):\n%s", diff)
		}
	}
}

func TestPeersFail(t *testing.T) {
	failing := func(err error) proxyFunc {
		return func(*proxy.Query) (*proxy.Answer, error) { return nil, err }
	}
	tests := map[string]struct {
		proxy  reads.Proxy
		status int
	}{
		"none":             {nil, 500},
		"all fail":         {failing(errors.New("connection refused")), 502},
		"all time out":     {failing(fmt.Errorf("peers: %w", context.DeadlineExceeded)), 504},
		"given up":         {failing(fmt.Errorf("peers: %w", context.Canceled)), 499},
		"not even a proxy": {proxyFunc(nil), 500},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := start(t, away(t), testOptions{Proxy: test.proxy})
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
	answer := response(t, 200, "", proxy.Header{})
	answer.Length = 1 << 20
	answer.Body.(*peersBody).Reader = io.MultiReader(strings.NewReader(noise(1, 300<<10)), &broken{})
	m := metrics.New()
	s := start(t, away(t), testOptions{Metrics: m.Server, Proxy: proxyFunc(func(*proxy.Query) (*proxy.Answer, error) { return answer, nil })})
	_, got := startLarge(t, s, "/db/k")
	body, err := io.ReadAll(got.Body)
	if !errors.Is(err, io.ErrUnexpectedEOF) || len(body) > 300<<10 {
		t.Errorf("%d bytes, %v", len(body), err)
	}
	expect.Eventually(t, "the request to be counted", func() bool { return answered(m)["502"] == 1 })
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("reset by peer") }

// A large value the first part of which cannot be read is asked for as one that is not here: with the range, and the answer says who has it.
func TestLargeDamageWithPeers(t *testing.T) {
	large := noise(2, 1<<20)
	info := version.Info{DB: "db", Content: contents.Of("v1"), Partitions: 1, LastModified: modified, Following: version.Solo{}}
	requests := new(expect.Output)
	other := start(t, &catalog{sets: map[string]*version.Set{"db": damagedOf(t, info, map[string]string{"k": large})}}, testOptions{RequestLog: requests})
	info.Following = peersOnly{peers: []string{other.addr}}
	p := newProxy(proxy.Options{Timeout: 10 * time.Second})
	t.Cleanup(p.Close)
	set := damagedOf(t, info, map[string]string{"k": large}, large[:100], large[1<<20-200:1<<20-100])
	s := start(t, &catalog{sets: map[string]*version.Set{"db": set}}, testOptions{Proxy: p})
	for rng, want := range map[string]string{"": large, "Range: bytes=0-99": large[:100], "Range: bytes=-100": large[1<<20-100:]} {
		got := s.get(t, "/db/k", rng)
		if got.body != want || got.header.Get("X-Sequins-Proxied-To") != other.addr {
			t.Errorf("%s: %d, %d bytes from %q", rng, got.status, len(got.body), got.header.Get("X-Sequins-Proxied-To"))
		}
		if sent := fmt.Sprintf("/db/k %d", len(want)); !strings.Contains(requests.String(), sent) {
			t.Errorf("%s: the other node has not sent %q:\n%s", rng, sent, requests)
		}
	}
}

// If a block cannot be read, other nodes are asked; the answer is 500 if none has it.
func TestDamageWithPeers(t *testing.T) {
	for _, helpful := range []bool{true, false} {
		value := noise(1, 1000)
		info := version.Info{DB: "db", Content: contents.Of("v1"), Partitions: 1, LastModified: modified, Following: peersOnly{peers: []string{"p:1"}}}
		set := damagedOf(t, info, map[string]string{"k": value}, value[100:200])
		s := start(t, &catalog{sets: map[string]*version.Set{"db": set}}, testOptions{Proxy: proxyFunc(func(*proxy.Query) (*proxy.Answer, error) {
			if helpful {
				return response(t, 200, value, proxy.Header{}), nil
			}
			return nil, errors.New("connection refused")
		})})
		got := s.get(t, "/db/k")
		if helpful && (got.status != 200 || got.body != value || got.header.Get("X-Sequins-Proxied-To") != "q:2") {
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
