package server

import (
	"bytes"
	"regexp"

	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sequins/observe/metrics"
	"sequins/observe/status"
	"sequins/proxy"
	"sequins/reads"
	"sequins/server/auth"
	"sequins/server/statuspage"
	"sequins/test/contents"
	"sequins/test/expect"
	"sequins/test/versions"
	"sequins/version"
)

// The tokens of these tests, and headers with them.
const (
	tokensFile = `
web   the-token-of-the-web      db,none
other the-token-of-the-others   others
ops   the-token-of-the-ops      -           pages
all   the-token-for-all-of-it   *           pages
`
	webToken   = "Authorization: Bearer the-token-of-the-web"
	otherToken = "Authorization: Bearer the-token-of-the-others"
	opsToken   = "Authorization: Bearer the-token-of-the-ops"
	allToken   = "Authorization: Bearer the-token-for-all-of-it"
	asksHTML   = "Accept: text/html"
)

// openTokens writes a tokens file.
func openTokens(t testing.TB, text string) (tokens *auth.Tokens, file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "tokens")
	expect.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	tokens, err := auth.Open(file)
	expect.NoError(t, err)
	return tokens, file
}

// guarded serves one db, "db", to clients with a token.
func guarded(t *testing.T, o testOptions) (*running, *catalog) {
	c := catalogOf(t, map[string]string{"k": "value"})
	c.reason = "db is not there yet"
	c.state = status.Status{Node: "me", ShardID: "shard", DBs: map[string]status.DB{"db": {Versions: map[string]status.Version{
		"v1": {Path: "/the/path", NumPartitions: 2, Nodes: map[string]status.OnNode{"me": {State: status.Active, Current: true, Partitions: []int{0, 1}}}},
	}}}}
	o.Tokens, _ = openTokens(t, tokensFile)
	return start(t, c, o), c
}

func TestTokens(t *testing.T) {
	s, _ := guarded(t, testOptions{})
	tests := []struct {
		target, token string
		status        int
		body          string // or what it begins with
	}{
		{"/db/k", webToken, 200, "value"},
		{"/db/k", allToken, 200, "value"},
		{"/db/k", "authorization:  bearer   the-token-of-the-web", 200, "value"},
		{"/%64b/k", webToken, 200, "value"},
		{"/db/k?proxy=v1", webToken, 200, "value"},
		{"/db/absent", webToken, 404, "no such key\n"},
		{"/none/k", webToken, 404, "no such db\n"},
		{"/none/k", allToken, 404, "no such db\n"},

		{"/db/k", otherToken, 403, "the token other may not read this database\n"},
		{"/db/k", opsToken, 403, "the token ops may not read this database\n"},
		{"/db/k?proxy=v1", otherToken, 403, "the token other may not read this database\n"},
		{"/none/k", otherToken, 403, "the token other may not read this database\n"},
		{"/none/k?proxy=v1", otherToken, 403, "the token other may not read this database\n"},
		{"/db/k?explain", webToken, 403, "the token web may not see status pages and explanations\n"},
		{"/db/k?x&explain=1", webToken, 403, "the token web may not see status pages and explanations\n"},
		{"/db/k?explain", opsToken, 403, "the token ops may not read this database\n"},
		{"/db/k?explain", allToken, 200, `{"db":"db"`},

		{"/db?partitions", webToken, 200, `{"db":"db","version":"v1"`},
		{"/db/?partitions=", allToken, 200, `{"db":"db","version":"v1"`},
		{"/none?partitions", webToken, 404, "no such db\n"},
		{"/db?partitions", otherToken, 403, "the token other may not read this database\n"},
		{"/none?partitions", otherToken, 403, "the token other may not read this database\n"},
		{"/db?partitions", opsToken, 403, "the token ops may not read this database\n"},
		{"/db?partitions&explain", webToken, 200, `{"db":"db","version":"v1"`},
		{"/?partitions", webToken, 403, "the token web may not see status pages and explanations\n"},

		{"/", allToken, 200, `{"dbs":{"db"`},
		{"/", opsToken, 200, `{"dbs":{"db"`},
		{"/?proxy=status", opsToken, 200, `{"dbs":{"db"`},
		{"/db", opsToken, 200, `{"versions"`},
		{"/db/", opsToken, 200, `{"versions"`},
		{"/none", opsToken, 404, "no such db\n"},
		{"/", webToken, 403, "the token web may not see status pages and explanations\n"},
		{"/db", webToken, 403, "the token web may not see status pages and explanations\n"},
		{"/none/", webToken, 403, "the token web may not see status pages and explanations\n"},

		// Probes are for everybody, what they tell of dbs is not.
		{"/livez", "X: y", 200, "ok\n"},
		{"/healthz", "X: y", 200, "{}\n"},
		{"/readyz", "X: y", 503, "not ready\n"},
		{"/healthz", "Authorization: Bearer nobody-knows-this-token", 200, "{}\n"},
		{"/healthz", webToken, 200, "{}\n"},
		{"/healthz", opsToken, 200, `{"db":{"v1"`},
		{"/readyz", webToken, 503, "not ready\n"},
		{"/readyz", opsToken, 503, "not ready: db is not there yet\n"},
		{"/readyz?db=db", webToken, 503, "not ready\n"},
		{"/readyz?db=none", webToken, 503, "not ready\n"},
		{"/readyz?db=db", otherToken, 403, "the token other may not read this database\n"},
		{"/readyz?db=unknown", otherToken, 403, "the token other may not read this database\n"},
		{"/readyz?x=y&db=%64b", otherToken, 403, "the token other may not read this database\n"},
		{"/readyz?db=unknown", opsToken, 503, "not ready: there is no unknown\n"},
		{"/readyz?db=", "X: y", 503, "not ready\n"},
		{"/readyz?db=%zz", "X: y", 400, `the parameter "db": bad percent escape`},
		{"/db/%", "X: y", 400, ""}, // nothing has been looked up
	}
	for _, test := range tests {
		got := s.get(t, test.target, test.token)
		if got.status != test.status || !strings.HasPrefix(got.body, test.body) {
			t.Errorf("%s, %s: %d %.200q", test.target, test.token, got.status, got.body)
		}
		if asked := got.header.Get("WWW-Authenticate"); (asked != "") != (test.status == 403) {
			t.Errorf("%s, %s: WWW-Authenticate %q", test.target, test.token, asked)
		}
		head := s.do(t, "HEAD", test.target, test.token)
		if head.status != test.status || head.body != "" {
			t.Errorf("HEAD %s, %s: %d %.100q", test.target, test.token, head.status, head.body)
		}
	}
	if got := s.do(t, "POST", "/db/k"); got.status != 405 {
		t.Errorf("POST: %+v", got)
	}
}

// Who has no token, or a wrong one, learns nothing but that.
func TestWithoutToken(t *testing.T) {
	s, c := guarded(t, testOptions{})
	tokens := map[string]string{
		"X: y":                                  `Bearer realm="sequins"`,
		"Authorization: Basic dXNlcjpwYXNz":     `Bearer realm="sequins"`,
		"Authorization: the-token-of-the-web":   `Bearer realm="sequins"`,
		"Authorization: Bearer ":                `Bearer realm="sequins"`,
		"Authorization: Bearer the-token-of-it": `Bearer realm="sequins", error="invalid_token"`,
	}
	for token, challenge := range tokens {
		var first answer
		for i, target := range []string{"/db/k", "/db/absent", "/none/k", "/db/k?explain", "/db/k?proxy=v1", "/none/k?proxy=v1", "/", "/db", "/none/", "/?proxy=status", "/readyz?db=db", "/readyz?db=none"} {
			got := s.get(t, target, token)
			if got.status != 401 || got.header.Get("WWW-Authenticate") != challenge || !strings.HasSuffix(got.body, "\n") || strings.Count(got.body, "\n") != 1 {
				t.Errorf("%s, %s: %+v", target, token, got)
			}
			if i == 0 {
				first = got
			}
			if got.body != first.body {
				t.Errorf("%s, %s: %q, and elsewhere %q", target, token, got.body, first.body)
			}
			if strings.Contains(got.body, "the-token") {
				t.Errorf("%s: the token is in the answer: %q", target, got.body)
			}
		}
	}
	s.reads.Hold()
	if got := s.get(t, "/db/k"); got.status != 401 {
		t.Errorf("while it starts: %+v", got)
	}
	if got := s.get(t, "/db/k", webToken); got.status != 503 {
		t.Errorf("while it starts, with a token: %+v", got)
	}
	s.reads.Admit()
	c.remove("db")
	if got := s.get(t, "/db/k", otherToken); got.status != 403 {
		t.Errorf("a db that is gone: %+v", got)
	}
}

// A browser cannot send a token when it opens a page: it gets an empty page for any name.
func TestPageWithoutToken(t *testing.T) {
	s, _ := guarded(t, testOptions{})
	for _, target := range []string{"/", "/db", "/none/"} {
		got := s.get(t, target, asksHTML)
		if got.status != 401 || got.header.Get("Content-Security-Policy") != statuspage.Policy || !strings.HasPrefix(got.header.Get("Content-Type"), "text/html") {
			t.Errorf("%s: %d %v", target, got.status, got.header)
		}
		if !strings.Contains(got.body, "This node wants a token.") || strings.Count(got.body, "<script>") != 1 {
			t.Errorf("%s: %s", target, got.body)
		}
		for _, secret := range []string{"v1", "/the/path", "shard", "me<"} {
			if body := ownCode.ReplaceAllString(got.body, ""); strings.Contains(body, secret) {
				t.Errorf("%s: the page says %q: %s", target, secret, body)
			}
		}
	}
	if got := s.get(t, "/", asksHTML, opsToken); got.status != 200 || !strings.Contains(got.body, "v1") {
		t.Errorf("with a token: %+v", got)
	}
	if got := s.get(t, "/db/k", asksHTML); got.status != 401 || got.body != needsToken+"\n" {
		t.Errorf("a key: %+v", got)
	}
}

// A changed file applies from the next request on, also on open connections.
func TestTokensAreReplaced(t *testing.T) {
	tokens, file := openTokens(t, tokensFile)
	s := start(t, catalogOf(t, map[string]string{"k": "value"}), testOptions{Tokens: tokens})
	c := s.dial(t)
	ask := func() int {
		t.Helper()
		fmt.Fprintf(c, "GET /db/k HTTP/1.1\r\nHost: x\r\n%s\r\n\r\n", webToken)
		buf := make([]byte, 4096)
		n, err := c.Read(buf)
		expect.NoError(t, err)
		var code int
		fmt.Sscanf(string(buf[:n]), "HTTP/1.1 %d", &code)
		return code
	}
	if code := ask(); code != 200 {
		t.Errorf("at first: %d", code)
	}
	expect.NoError(t, os.WriteFile(file, []byte("web another-token-of-the-web db\n"), 0o600))
	expect.NoError(t, tokens.Reload())
	if code := ask(); code != 401 {
		t.Errorf("after it was taken out: %d", code)
	}
}

// Nodes show each other the secret of the cluster, and never a client's token.
func TestTokensBetweenNodes(t *testing.T) {
	const secret = "the-token-of-the-cluster"
	holder, _ := guarded(t, testOptions{PeerSecret: secret})
	strict, _ := guarded(t, testOptions{PeerSecret: "the-token-of-another-cluster"})
	front := func(peer string) *running {
		set := version.NewSet("db")
		versions.Activate(t, set, version.New(version.Info{DB: "db", Content: contents.Of("v1"), Partitions: 2, Following: peersOnly{peers: []string{peer}}}))
		p := newProxy(proxy.Options{Timeout: patience})
		tokens, _ := openTokens(t, tokensFile)
		s := start(t, &catalog{sets: map[string]*version.Set{"db": set}}, testOptions{
			Proxy: p, Tokens: tokens, PeerSecret: secret, Peers: func() []status.Peer { return []status.Peer{{Addr: peer}} },
		})
		t.Cleanup(p.Close)
		return s
	}
	s := front(holder.addr)
	if got := s.get(t, "/db/k", webToken); got.status != 200 || got.body != "value" || got.header.Get("X-Sequins-Proxied-To") != holder.addr {
		t.Errorf("from a peer: %+v", got)
	}
	if got := s.get(t, "/db/k", otherToken); got.status != 403 {
		t.Errorf("without asking a peer: %+v", got)
	}
	var e reads.Explanation
	if got := s.get(t, "/db/k?explain", allToken); json.Unmarshal([]byte(got.body), &e) != nil || e.Status != 200 || e.AnsweredBy != holder.addr {
		t.Errorf("explained: %+v", got)
	}
	var st status.Status
	if got := s.get(t, "/", opsToken); json.Unmarshal([]byte(got.body), &st) != nil || len(st.Peers) != 1 || st.Peers[holder.addr].Error != "" {
		t.Errorf("the status of a peer: %+v", got)
	}

	refused := front(strict.addr)
	if got := refused.get(t, "/db/k", webToken); got.status != 502 || strings.Contains(got.body, "the-token") {
		t.Errorf("refused by a peer: %+v", got)
	}
	if got := refused.get(t, "/", opsToken); json.Unmarshal([]byte(got.body), &st) != nil || st.Peers[strict.addr].Error != "it answers with 403 Forbidden: its sharding.secret is another one" {
		t.Errorf("the status, refused by a peer: %+v", got)
	}
	expect.Eventually(t, "the refusal to be logged", func() bool { return strings.Contains(refused.logs.String(), "status 403") })
	if log := refused.logs.String(); strings.Contains(log, "the-token") {
		t.Errorf("the token is logged: %s", log)
	}
}

// If the cluster has a secret, ?proxy= requires it, with or without a token.
func TestSecretOfTheCluster(t *testing.T) {
	const shows = "X-Sequins-Cluster: the-secret-of-the-cluster"
	o := testOptions{PeerSecret: "the-secret-of-the-cluster"}
	withTokens, _ := guarded(t, o)
	for name, s := range map[string]*running{"open": start(t, catalogOf(t, map[string]string{"k": "value"}), o), "tokens": withTokens} {
		for _, test := range []struct {
			target string
			header []string
			want   int
		}{
			{"/db/k?proxy=v1", []string{shows}, 200}, {"/db/k?proxy=true", []string{shows}, 200}, {"/db/none?proxy=v1", []string{shows}, 404}, {"/db/k?proxy=v2", []string{shows}, 501},
			{"/db/k?x=y&proxy=v1", []string{shows}, 200}, {"/db/k?proxy=v1", []string{shows, "Range: bytes=0-1"}, 206}, {"/?proxy=status", []string{shows}, 200},
			{"/db/k?proxy=v1", []string{allToken}, 403}, {"/db/k?proxy=v1", []string{shows + "x"}, 403}, {"/db/k?proxy=v1", []string{"X-Sequins-Cluster: x", "Range: bytes=0-1"}, 403},
			{"/db/k?x=y&proxy=v1", []string{allToken}, 403}, {"/db/k?proxy=%", []string{allToken}, 400}, {"/db/k?%70roxy=v1", []string{allToken}, 403}, {"/?proxy=status", []string{opsToken}, 403}, {"/none/k?proxy=v1", nil, 403},
			{"/db/k", []string{allToken}, 200}, {"/livez?proxy=v1", nil, 200}, {"/db/k?proxy=", []string{allToken}, 200},
		} {
			if got := s.get(t, test.target, test.header...); got.status != test.want || strings.Contains(got.body, "the-secret") {
				t.Errorf("%s: %s with %q: %+v", name, test.target, test.header, got)
			}
		}
		if strings.Contains(s.logs.String(), "the-secret") {
			t.Errorf("the secret is logged: %s", s.logs)
		}
	}
}

// However a request goes wrong, its token is in no log and no answer.
func TestTokensAreNotTold(t *testing.T) {
	const secret = "S3cr3tS3cr3tS3cr3t"
	var requests expect.Output
	tokens, _ := openTokens(t, "web "+secret+" db\n")
	said := new(expect.Output)
	s := start(t, catalogOf(t, map[string]string{"k": "value"}), testOptions{
		Tokens: tokens, RequestLog: &requests, Logger: slog.New(slog.NewTextHandler(said, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	authorization := "Authorization: Bearer " + secret
	for _, request := range []string{
		"GET /db/k HTTP/1.1\r\nHost: x\r\n" + authorization + "\r\n\r\n",
		"GET /db/k HTTP/1.1\r\nHost: x\r\n" + authorization + "x\r\n\r\n",
		"GET /db/k HTTP/1.1\r\nHost: x\r\n" + authorization + "\r\nbad header\r\n\r\n",
		"GET /db/k HTTP/1.1\r\nHost: x\r\n" + authorization + "\x01\r\n\r\n",
		"GET /db/k HTTP/1.1\r\nHost: x\r\n" + authorization + "\r\nX: " + strings.Repeat("x", maxFields) + "\r\n\r\n",
		"GET /db/k HTTP/1.1\r\nHost: x\r\n" + authorization + "\r\nX: " + strings.Repeat("x", maxHeader) + "\r\n\r\n",
		"GET /db/k\r\n" + authorization + "\r\n\r\n",
		"GET /db/k HTTP/1.1\r\nHost: x\r\n" + authorization + "\r\nContent-Length: x\r\n\r\n",
		authorization + "\r\n\r\n",
	} {
		c := s.dial(t)
		go func() { // the server may refuse it before it is whole
			io.WriteString(c, request)
			c.(interface{ CloseWrite() error }).CloseWrite()
		}()
		all, _ := io.ReadAll(c)
		if bytes.Contains(all, []byte(secret)) || len(all) == 0 {
			t.Errorf("%.60q is answered with %q", request, all)
		}
	}
	expect.Eventually(t, "the request log", func() bool { return strings.Contains(requests.String(), " token=web\n") })
	if text := requests.String() + said.String(); strings.Contains(text, secret[:10]) {
		t.Errorf("the token is logged:\n%s", text)
	}
}

// Refusals are counted with no db, be there one or not.
func TestRefusalsAreCounted(t *testing.T) {
	m := metrics.New()
	s, _ := guarded(t, testOptions{Metrics: m.Server})
	s.get(t, "/db/k")
	s.get(t, "/db/k", otherToken)
	s.get(t, "/db/k?proxy=v1")
	s.get(t, "/")
	s.get(t, "/", asksHTML)
	for _, want := range []string{
		`sequins_requests_total{code="401",db="",route="key"} 1`, `sequins_requests_total{code="401",db="",route="peer"} 1`,
		`sequins_requests_total{code="403",db="",route="key"} 1`,
		`sequins_requests_total{code="401",db="",route="status"} 2`,
	} {
		expect.Eventually(t, want, func() bool { return strings.Contains(scrapeText(t, m), want) }) // the page is counted when it is sent
	}
}

// ownCode is the style and the script of a page.
var ownCode = regexp.MustCompile(`(?s)<(style|script)>.*?</(style|script)>`)

// Whoever asks as a node does, which needs no secret if the cluster has none, gets what protects browsers and caches, too.
func TestAnswersToNodesAreProtected(t *testing.T) {
	s, _ := guarded(t, testOptions{})
	for target, cache := range map[string]string{"/db/k": "private", "/db/k?proxy=true": "private", "/db/absent?proxy=true": "private"} {
		got := s.get(t, target, webToken)
		if got.header.Get("X-Content-Type-Options") != "nosniff" || got.header.Get("Cache-Control") != cache {
			t.Errorf("%s: %+v", target, got)
		}
	}
	if got := s.get(t, "/db/k?proxy=true"); got.status != 401 || got.header.Get("Cache-Control") != "no-store" || got.header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%+v", got)
	}
}
