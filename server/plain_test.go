package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sequins/observe/metrics"
	"sequins/proxy"
	"sequins/test/versions"
	"sequins/version"
)

// Which requests are plain.
func TestParsePlain(t *testing.T) {
	const host = "Host: x\r\n"
	for header, want := range map[string]bool{
		"GET /db/k HTTP/1.1\r\n" + host + "\r\n": true,
		"GET /db/k?proxy=v1 HTTP/1.1\r\n" + host + "User-Agent: a/b (c)\r\nAccept: */*\r\nCookie: \xff\r\n\r\n":                                true,
		"GET /db/k?proxy=day=a%2Bb,c@d:e HTTP/1.1\r\n" + host + "\r\n":                                                                         true,
		"GET / HTTP/1.1\r\nhOsT:  localhost:9599 \r\nCONNECTION:\tKeep-Alive\r\n\r\n":                                                          true,
		"GET /db/k HTTP/1.1\r\n" + host + "Referer: r\r\nTracestate: a=b\r\nTraceparent: x\r\nAuthorization: Bearer x\r\nUpgrade: h2c\r\n\r\n": true,

		"GET /db/k HTTP/1.1\r\n" + host + "Accept: a/b\r\nOrigin: http://x\r\nAccept-Encoding: gzip\r\n\r\n": true,
		"GET /db/k HTTP/1.1\r\n" + host + "Accept:\r\nOrigin: \r\nAccept-Encoding: \r\n\r\n":                 true,
		"GET /db/k HTTP/1.1\r\n" + host + "Accept: \r\nAccept: \r\n\r\n":                                     false,
		"GET /db/k HTTP/1.1\r\n" + host + "Origin: a\r\norigin: a\r\n\r\n":                                   false,
		"GET /db/k HTTP/1.1\r\n" + host + "Accept-Encoding: \r\nAccept-Encoding: gzip\r\n\r\n":               false,

		"GET /db/k HTTP/1.1\r\n\r\n":                     false, // no host
		"GET /db/k HTTP/1.1\r\n" + host + host + "\r\n":  false,
		"GET /db/k HTTP/1.1\r\nHost:\r\n\r\n":            false,
		"GET /db/k HTTP/1.1\r\nHost: [::1]:80\r\n\r\n":   false,
		"GET /db/k HTTP/1.1\r\nHost: a/b\r\n\r\n":        false,
		"GET /db/k HTTP/1.1\r\nHost: a:\r\n\r\n":         true,
		"GET /db/k HTTP/1.1\r\nHost: a:b\r\n\r\n":        true,
		"GET /db/k HTTP/1.0\r\n" + host + "\r\n":         false,
		"HEAD /db/k HTTP/1.1\r\n" + host + "\r\n":        false,
		"POST /db/k HTTP/1.1\r\n" + host + "\r\n":        false,
		"get /db/k HTTP/1.1\r\n" + host + "\r\n":         false,
		"GET http://x/db/k HTTP/1.1\r\n" + host + "\r\n": false,
		"GET /db/a b HTTP/1.1\r\n" + host + "\r\n":       false,
		"GET /db/k  HTTP/1.1\r\n" + host + "\r\n":        false,
		"GET /db/k\x01 HTTP/1.1\r\n" + host + "\r\n":     false,
		"GET / HTTP/1.1":                                                                 false,
		"GET /db/k HTTP/1.1\n" + host + "\r\n":                                           false,
		"GET /db/k HTTP/1.1\r\n" + host:                                                  false,
		"GET /db/k HTTP/1.1\r\n" + host + "\n":                                           false,
		"GET /db/k HTTP/1.1\r\n" + host + "\r\nx":                                        false,
		"GET /db/k HTTP/1.1\r\n" + host + "A: b\n\r\n":                                   false,
		"GET /db/k HTTP/1.1\r\n" + host + " folded\r\n\r\n":                              false,
		"GET /db/k HTTP/1.1\r\n" + host + "A : b\r\n\r\n":                                false,
		"GET /db/k HTTP/1.1\r\n" + host + "no colon\r\n\r\n":                             false,
		"GET /db/k HTTP/1.1\r\n" + host + ": b\r\n\r\n":                                  false,
		"GET /db/k HTTP/1.1\r\n" + host + "A: \x00\r\n\r\n":                              false,
		"GET /db/k HTTP/1.1\r\n" + host + "A: \r\r\n\r\n":                                false,
		"GET /db/k HTTP/1.1\r\n" + host + "range: bytes=0-1\r\n\r\n":                     false,
		"GET /db/k HTTP/1.1\r\n" + host + "if-none-match: *\r\n\r\n":                     false,
		"GET /db/k HTTP/1.1\r\n" + host + "If-Match: *\r\n\r\n":                          false,
		"GET /db/k HTTP/1.1\r\n" + host + "If-Range: x\r\n\r\n":                          false,
		"GET /db/k HTTP/1.1\r\n" + host + "If-Modified-Since: x\r\n\r\n":                 false,
		"GET /db/k HTTP/1.1\r\n" + host + "If-Unmodified-Since: x\r\n\r\n":               false,
		"GET /db/k HTTP/1.1\r\n" + host + "If-New: x\r\n\r\n":                            false,
		"GET /db/k HTTP/1.1\r\n" + host + "Expect: 100-continue\r\n\r\n":                 false,
		"GET /db/k HTTP/1.1\r\n" + host + "Connection: close\r\n\r\n":                    false,
		"GET /db/k HTTP/1.1\r\n" + host + "Connection: keep-alive, x\r\n\r\n":            false,
		"GET /db/k HTTP/1.1\r\n" + host + "Content-Length: 0\r\n\r\n":                    false,
		"GET /db/k HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n":           false,
		"GET /db/k HTTP/1.1\r\n" + host + "Trailer: x\r\n\r\n":                           false,
		"GET /db/k HTTP/1.1\r\n" + host + "Authorization: a\r\nAuthorization: a\r\n\r\n": false,
		"GET /db/k HTTP/1.1\r\n" + host + "Authorization: \r\n\r\n":                      false,
		"GET /db/k HTTP/1.1\r\n" + host + "Traceparent: a\r\ntraceparent: a\r\n\r\n":     false,
		"GET /db/k HTTP/1.1\r\n" + host + "Tracestate: a\r\ntracestate: a\r\n\r\n":       false,
	} {
		if _, ok := parsePlain([]byte(header)); ok != want {
			t.Errorf("%q: plain %v, want %v", header, ok, want)
		}
	}
}

var dateLine = regexp.MustCompile(`\r\nDate: [A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT\r\n`)

// talk sends requests and returns the answers without the date, which must be in the last minute.
func talk(t *testing.T, s *Server, requests string, general bool) string {
	t.Helper()
	c := record(requests)
	c.serve(s, general)
	return dateLine.ReplaceAllStringFunc(c.out.String(), func(line string) string {
		date, err := time.Parse(http.TimeFormat, strings.TrimSpace(line[len("\r\nDate: "):]))
		if age := time.Since(date); err != nil || age < -time.Second || age > time.Minute {
			t.Errorf("%q", line)
		}
		return "\r\nDate\r\n"
	})
}

// compared are servers of the same data, in which each way of answering occurs.
func compared(t testing.TB) map[string]*Server {
	t.Helper()
	c := catalogOf(t, map[string]string{
		"a": "one", "": "empty key", "empty": "", "a b/c": "escaped", "4K": noise(1, copied), "more": noise(2, copied+1), "large": noise(3, 100<<10),
	})
	partial := version.NewSet("partial")
	versions.Activate(t, partial, versionOf(t, "partial", "v 2", 4, map[string]string{"a": "one", "b": "two"}))
	c.sets["partial"], c.sets["none"] = partial, version.NewSet("none")
	tokens, _ := openTokens(t, tokensFile)
	tracer, _ := tracer()
	servers := map[string]*Server{}
	for name, o := range map[string]testOptions{
		"usual":        {},
		"tokens":       {Tokens: tokens},
		"traced":       {Tracer: tracer, RequestLog: io.Discard},
		"content type": {ContentType: func(string) string { return "text/x; charset=utf-8" }},
		"odd type":     {ContentType: func(string) string { return "text/x\r\nX: y" }},
		"web": {Delivery: Delivery{Origins: []string{"http://x", "http://y"}, Codings: []string{"zstd", "gzip"}, MinEncoded: 100, Caching: "max-age=1",
			CachingOf: map[string]string{"partial": "max-age=2"}}},
		"all origins": {Tokens: tokens, Delivery: Delivery{Origins: []string{"*"}}},
	} {
		o.Metrics = metrics.New().Server
		servers[name] = newServer(c, o)
	}
	return servers
}

var comparedRequests = []string{
	"GET /db/a HTTP/1.1\r\nHost: x\r\n\r\n",
	"GET /db/absent HTTP/1.1\r\nHost: x\r\n\r\nGET /db/a%20b%2Fc HTTP/1.1\r\nHost: x\r\nAccept: */*\r\n\r\n",
	"GET /db/empty HTTP/1.1\r\nHost: x\r\n\r\nGET /db/4K HTTP/1.1\r\nHost: x\r\n\r\nGET /db/more HTTP/1.1\r\nHost: x\r\n\r\nGET /db/large HTTP/1.1\r\nHost: x\r\n\r\nGET /db/a HTTP/1.1\r\nHost: x\r\n\r\n",
	"GET /partial/a HTTP/1.1\r\nHost: x\r\n\r\nGET /partial/b HTTP/1.1\r\nHost: x\r\n\r\nGET /partial/c HTTP/1.1\r\nHost: x\r\n\r\n",
	"GET /none/a HTTP/1.1\r\nHost: x\r\n\r\nGET /no/a HTTP/1.1\r\nHost: x\r\n\r\nGET /livez HTTP/1.1\r\nHost: x\r\n\r\n",
	"GET /db/a?proxy=v1 HTTP/1.1\r\nHost: x\r\n\r\nGET /db/a?proxy=v2 HTTP/1.1\r\nHost: x\r\n\r\nGET /db/a?proxy=%76%31 HTTP/1.1\r\nHost: x\r\n\r\nGET /db/b?proxy=true HTTP/1.1\r\nHost: x\r\n\r\n",
	"GET /db/a?x HTTP/1.1\r\nHost: x\r\n\r\nGET /db/a?proxy= HTTP/1.1\r\nHost: x\r\n\r\nGET /db/%25 HTTP/1.1\r\nHost: x\r\n\r\n",
	"GET /db/a HTTP/1.1\r\nHost: x\r\nConnection: keep-alive\r\nAuthorization: Bearer nobody\r\n\r\nGET /db/a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
	"GET /db/a HTTP/1.1\r\nHost: x\r\n" + webToken + "\r\n\r\nGET /partial/a HTTP/1.1\r\nHost: x\r\n" + webToken + "\r\n\r\n",
	"GET /db/a HTTP/1.1\r\nHost: x\r\n\r\nHEAD /db/a HTTP/1.1\r\nHost: x\r\n\r\nGET /db/a HTTP/1.1\r\nHost: x\r\nRange: bytes=1-\r\n\r\n",
	"GET /db/a HTTP/1.1\r\nHost: a_b\r\n\r\nGET /db/a HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n",
	"GET /db/a HTTP/1.1\r\nHost: x\r\nOrigin: http://x\r\n\r\nGET /db/absent HTTP/1.1\r\nHost: x\r\nOrigin: http://z\r\nAccept: application/json\r\n\r\nGET /db/a HTTP/1.1\r\nHost: x\r\nOrigin:\r\n\r\n",
	"GET /partial/none HTTP/1.1\r\nHost: x\r\nAccept: application/problem+json, */*\r\n\r\nGET /partial/a?proxy=true HTTP/1.1\r\nHost: x\r\nOrigin: http://x\r\n" + webToken + "\r\n\r\n",
	"GET /db/a HTTP/1.1\r\nHost: x\r\nAccept-Encoding: identity\r\n\r\nGET /db/4K HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip;q=0\r\n\r\nGET /db/a HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\n\r\n",
	"GET /db/large HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\n\r\nGET /db/large HTTP/1.1\r\nHost: x\r\nAccept-Encoding: zstd, *;q=0\r\n\r\n",
	"GET //0 HTTP/1.1\r\nHost:00\r\n\r\nno request line\r\n\r\n",
	"GET /db/a#?b HTTP/1.1\r\nHost: 1.2.3.4:80\r\nX-\x7f: y\r\n\r\n",
}

// A plain request is answered as net/http would, to the line; the order of lines and the case of names may
// differ.
func TestPlainAnswersAreTheSame(t *testing.T) {
	for name, s := range compared(t) {
		serving(t, s)
		for _, requests := range comparedRequests {
			got, want := talk(t, s, requests, false), talk(t, s, requests, true)
			if !slices.Equal(lines(got), lines(want)) || !strings.HasPrefix(want, "HTTP/1.1 ") {
				t.Errorf("%s: %q is answered\n%q\nnet/http answers\n%q", name, requests, got, want)
			}
		}
	}
}

// Which requests are answered without net/http, which gets no connection here.
func TestAnsweredAsPlain(t *testing.T) {
	all := compared(t)
	all["holding"] = compared(t)["usual"]
	all["holding"].reads.Hold()
	for _, test := range []struct {
		server, target, headers string
		want                    bool
	}{
		{"usual", "/db/a", "", true}, {"usual", "/db/absent", "", true}, {"usual", "/db/a?proxy=v1", "", true}, {"usual", "/db/4K", "", true}, {"usual", "/db/more", "", true}, {"usual", "/partial/a", "", true},
		{"tokens", "/db/a", webToken + "\r\n", true}, {"traced", "/db/a", "Traceparent: " + sampled + "\r\n", true}, {"content type", "/db/a", "", true},
		{"usual", "/none/a", "", true}, {"usual", "/nothing/a", "", true}, {"usual", "/db/a?proxy=v2", "", true}, {"usual", "/db/large", "", true},
		{"tokens", "/db/a", "", true}, {"tokens", "/partial/a", webToken + "\r\n", true}, {"odd type", "/db/a", "", true}, {"holding", "/db/a", "", true}, {"usual", "/db/%", "", true},

		{"usual", "/db/a", "Range: bytes=0-1\r\n", false}, {"usual", "/db/a?explain", "", false}, {"usual", "/db", "", false},
		{"usual", "/db/a", "Accept-Encoding: gzip\r\nOrigin: http://x\r\nAccept: application/json\r\n", true}, {"web", "/db/a", "Accept-Encoding: identity, gzip;q=0\r\nOrigin: http://x\r\n", true},
		{"web", "/db/a", "Accept-Encoding:\r\n", true}, {"web", "/db/a", "Accept-Encoding: gzip\r\n", false}, {"all origins", "/db/a", "Origin: http://x\r\n", true},
		{"usual", "/db/a", "X: " + strings.Repeat("x", readAhead) + "\r\n", false},
	} {
		s := all[test.server]
		s.http.Close()
		client := record("GET " + test.target + " HTTP/1.1\r\nHost: x\r\n" + test.headers + "\r\n")
		client.serve(s, false)
		if got := client.out.Len() > 0; got != test.want {
			t.Errorf("%s: %s %s: plain %v, %s", test.server, test.target, test.headers, got, &client.out)
		}
	}
}

// While the server drains, a plain request is answered, and the connection ends.
func TestPlainWhileDraining(t *testing.T) {
	s := compared(t)["usual"]
	s.Drain()
	client := record(strings.Repeat("GET /db/a HTTP/1.1\r\nHost: x\r\n\r\n", 2))
	client.serve(s, false)
	raw := client.out.String()
	got := read(t, bufio.NewReader(&client.out), "GET")
	if got.status != 200 || got.body != "one" || !got.closed || strings.Count(raw, "HTTP/1.1") != 1 {
		t.Errorf("%q", raw)
	}
}

// Requests of any kind that come when the shutdown has just begun are answered.
func TestRequestsAsShutdownBegins(t *testing.T) {
	for _, target := range []string{"/db/a", "/db/a?general", "/livez"} {
		inBubble(t, catalogOf(t, map[string]string{"a": "one"}), testOptions{}, func(s *Server, dial func() net.Conn) {
			client := dial()
			time.Sleep(time.Second)
			down := make(chan error, 1)
			go func() { down <- s.Shutdown(context.Background()) }()
			time.Sleep(25 * time.Millisecond)
			fmt.Fprintf(client, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", target)
			if got := read(t, bufio.NewReader(client), "GET"); got.status != 200 || !got.closed {
				t.Errorf("%s: %+v", target, got)
			}
			if err := <-down; err != nil {
				t.Error(err)
			}
		})
	}
}

// Answers of peers are forwarded like those of the net/http front end.
func TestPlainProxiedAnswersAreTheSame(t *testing.T) {
	whole := proxy.Header{ETag: []byte(`"e"`), LastModified: []byte("x"), ContentType: []byte("text/y"), AcceptRanges: []byte("bytes")}
	for name, answer := range map[string]func() (*proxy.Answer, error){
		"small": func() (*proxy.Answer, error) { return valueOf(response(t, 200, "value", whole), "value"), nil },
		"bare":  func() (*proxy.Answer, error) { return valueOf(response(t, 200, "value", proxy.Header{}), "value"), nil },
		"more": func() (*proxy.Answer, error) {
			v := noise(1, 60<<10)
			return valueOf(response(t, 200, v, whole), v), nil
		},
		"large":    func() (*proxy.Answer, error) { return response(t, 200, noise(2, 300<<10), whole), nil },
		"absent":   func() (*proxy.Answer, error) { return response(t, 404, "whatever", proxy.Header{}), nil },
		"nobody":   func() (*proxy.Answer, error) { return nil, errors.New("connection refused") },
		"late":     func() (*proxy.Answer, error) { return nil, fmt.Errorf("peers: %w", context.DeadlineExceeded) },
		"given up": func() (*proxy.Answer, error) { return nil, fmt.Errorf("peers: %w", context.Canceled) },
	} {
		var asked []string
		m := metrics.New()
		s := newServer(away(t), testOptions{Metrics: m.Server, Proxy: proxyFunc(func(q *proxy.Query) (*proxy.Answer, error) {
			asked = append(asked, fmt.Sprintf("%s %s %v %s", q.Path, q.Version, q.Peers, q.Fields))
			return answer()
		})})
		serving(t, s)
		requests := "GET /db/a%20b HTTP/1.1\r\nHost: x\r\nAuthorization: a\r\nTraceparent: b\r\nTracestate: c\r\n\r\nGET /db/b HTTP/1.1\r\nHost: x\r\n\r\n"
		got := talk(t, s, requests, false)
		plain := answered(m)
		want := talk(t, s, requests, true)
		if !slices.Equal(lines(got), lines(want)) || !strings.HasPrefix(want, "HTTP/1.1 ") {
			t.Errorf("%s: %d bytes: %.400q, net/http: %d bytes: %.400q", name, len(got), got, len(want), want)
		}
		if half := len(asked) / 2; !slices.Equal(asked[:half], asked[half:]) || half == 0 {
			t.Errorf("%s: asked %q", name, asked)
		}
		for code, n := range answered(m) {
			if n != 2*plain[code] {
				t.Errorf("%s: %d with status %s, %d of them plain", name, n, code, plain[code])
			}
		}
	}
}

// After an answer that could not be sent completely, the connection sends nothing.
func TestPlainAfterBrokenOff(t *testing.T) {
	s := newServer(away(t), testOptions{Proxy: proxyFunc(func(*proxy.Query) (*proxy.Answer, error) {
		a := response(t, 200, noise(3, 300<<10), proxy.Header{})
		a.Length++
		return a, nil
	})})
	serving(t, s)
	const request = "GET /db/a HTTP/1.1\r\nHost: x\r\n\r\n"
	if got := talk(t, s, request+request, false); strings.Count(got, "HTTP/1.1") != 1 {
		t.Errorf("%d bytes, %.200q", len(got), got)
	}
}

// valueOf makes an answer one that is here whole.
func valueOf(a *proxy.Answer, value string) *proxy.Answer {
	a.Value = []byte(value)
	return a
}

// The forwarding of a large value of a peer stops when the client closes the connection or stops reading.
func TestPlainRelayIsGivenUp(t *testing.T) {
	m := metrics.New()
	inBubble(t, away(t), testOptions{Metrics: m.Server, Proxy: proxyFunc(func(*proxy.Query) (*proxy.Answer, error) {
		return response(t, 200, noise(2, 300<<10), proxy.Header{}), nil
	})}, func(s *Server, dial func() net.Conn) {
		gone, stuck := dial(), dial()
		for _, c := range []net.Conn{gone, stuck} {
			fmt.Fprint(c, "GET /db/a HTTP/1.1\r\nHost: x\r\n\r\n")
			if _, err := io.ReadFull(c, make([]byte, 100<<10)); err != nil {
				t.Fatal(err)
			}
		}
		gone.Close()
		time.Sleep(time.Minute)
		if n := s.open.Count(); n != 0 || answered(m)["499"] != 2 {
			t.Errorf("%d connections are open, %v", n, answered(m))
		}
	})
}

// differs finds what the fast path and net/http answer differently on purpose: empty lines before a
// request are skipped; a bad escape and the first byte of TLS have errors of their own.
var differs = regexp.MustCompile(`^[\r\n\x16]|\n\r?\n[\r\n\x16]|%([^0-9a-fA-F]|.[^0-9a-fA-F]|.?$)`)

// FuzzPlain compares the fast path with net/http for arbitrary requests.
func FuzzPlain(f *testing.F) {
	for _, requests := range comparedRequests {
		f.Add(requests, byte(0))
		f.Add(requests, byte(1))
		f.Add(requests, byte(3))
	}
	all := compared(f)
	names := []string{"usual", "tokens", "content type", "web", "all origins"}
	for _, name := range names {
		serving(f, all[name])
	}
	f.Fuzz(func(t *testing.T, requests string, which byte) {
		if differs.MatchString(requests) || !strings.HasSuffix(requests, "\r\n\r\n") {
			return // the last one is not whole: net/http looks at the next four bytes before it begins a request
		}
		s := all[names[int(which)%len(names)]]
		got, want := talk(t, s, requests, false), talk(t, s, requests, true)
		if strings.Contains(want, "<html") { // the time is on it
			return
		}
		if !slices.Equal(lines(got), lines(want)) {
			t.Fatalf("%q is answered\n%q\nnet/http answers\n%q", requests, got, want)
		}
	})
}

// lines are sorted, with the names of fields in lower case.
func lines(s string) (all []string) {
	for line := range strings.SplitSeq(s, "\r\n") {
		if name, value, ok := strings.Cut(line, ": "); ok {
			line = strings.ToLower(name) + ": " + value
		}
		all = append(all, line)
	}
	slices.Sort(all)
	return all
}

// Shutdown waits for a plain request that is being answered, and for no connection that
// has had plain ones only, as long as net/http would for one that it takes for new.
func TestShutdownAfterPlainRequests(t *testing.T) {
	const request = "GET /db/a HTTP/1.1\r\nHost: x\r\n\r\n"
	for what, first := range map[string]string{"after a plain one": request, "after one that is not plain": "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"} {
		inBubble(t, catalogOf(t, map[string]string{"a": "one"}), testOptions{}, func(s *Server, dial func() net.Conn) {
			client, idle := dial(), dial()
			r := bufio.NewReader(client)
			for _, c := range []struct {
				net.Conn
				r *bufio.Reader
			}{{client, r}, {idle, bufio.NewReader(idle)}} {
				fmt.Fprint(c, first)
				if got := read(t, c.r, "GET"); got.status != 200 {
					t.Fatalf("%s: %+v", what, got)
				}
			}
			fmt.Fprint(client, request) // and does not read
			time.Sleep(time.Second)
			down := make(chan error, 1)
			go func() { down <- s.Shutdown(context.Background()) }()
			between(t, "closing a connection that waits", 0, 100*time.Millisecond, func() {
				if _, err := idle.Read(make([]byte, 1)); err == nil {
					t.Error("more comes")
				}
			})
			time.Sleep(10 * time.Second)
			select {
			case err := <-down:
				t.Errorf("Shutdown has not waited: %v", err)
			default:
			}
			if got := read(t, r, "GET"); got.body != "one" {
				t.Errorf("%+v", got)
			}
			between(t, "Shutdown", 0, time.Second, func() {
				if err := <-down; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// What cannot be finished is given up with the context.
func TestShutdownGivesUpPlainRequests(t *testing.T) {
	inBubble(t, catalogOf(t, map[string]string{"a": "one"}), testOptions{}, func(s *Server, dial func() net.Conn) {
		client := dial()
		fmt.Fprint(client, "GET /db/a HTTP/1.1\r\nHost: x\r\n\r\n")
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		between(t, "Shutdown", 3*time.Second, 4*time.Second, func() {
			if s.Shutdown(ctx) == nil {
				t.Error("nothing was given up")
			}
		})
		client.Close()
	})
}

// A client that does not read its answer is cut off, for plain and other requests.
func TestPlainWriteTimeout(t *testing.T) {
	inBubble(t, catalogOf(t, map[string]string{"a": "one"}), testOptions{}, func(s *Server, dial func() net.Conn) {
		client := dial()
		fmt.Fprint(client, "GET /db/a HTTP/1.1\r\nHost: x\r\n\r\n")
		between(t, "giving the client up", 29*time.Second, 34*time.Second, func() {
			for s.open.Count() > 0 {
				time.Sleep(100 * time.Millisecond)
			}
		})
	})
}
