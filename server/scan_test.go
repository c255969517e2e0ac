package server

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"sequins/internal/wire"
	"sequins/observe/metrics"
	"sequins/proxy"
	"sequins/test/contents"
	"sequins/test/expect"
	"sequins/test/versions"
	"sequins/version"
)

// pair is a record of an answer.
type pair struct{ key, value string }

// parseLines parses an answer in NDJSON with encoding/json.
func parseLines(t testing.TB, body string) (all []pair, cursor string, complete bool) {
	t.Helper()
	text := func(raw json.RawMessage) string {
		var s string
		var b struct {
			Base64 *string `json:"base64"`
		}
		if json.Unmarshal(raw, &s) == nil {
			return s
		}
		if err := json.Unmarshal(raw, &b); err != nil || b.Base64 == nil {
			t.Fatalf("%.100q: %v", raw, err)
		}
		p, err := base64.StdEncoding.DecodeString(*b.Base64)
		if err != nil || utf8.Valid(p) {
			t.Fatalf("base64 of %.100q: %v", p, err)
		}
		return string(p)
	}
	for line := range strings.Lines(body) {
		var l struct {
			Key     json.RawMessage `json:"key"`
			Value   json.RawMessage `json:"value"`
			Version *string         `json:"version"`
			Records int             `json:"records"`
			Cursor  *string         `json:"cursor"`
		}
		d := json.NewDecoder(strings.NewReader(line))
		d.DisallowUnknownFields()
		if err := d.Decode(&l); err != nil || complete {
			t.Fatalf("%.100q: %v, behind the end: %v", line, err, complete)
		}
		if l.Version != nil {
			complete = true
			if l.Records != len(all) || *l.Version != "v1" {
				t.Errorf("%s after %d records", line, len(all))
			}
			if l.Cursor != nil {
				cursor = *l.Cursor
			}
			continue
		}
		p := pair{key: text(l.Key)}
		if l.Value != nil {
			p.value = text(l.Value)
		}
		all = append(all, p)
	}
	return all, cursor, complete
}

// parseBytes parses an answer in bytes.
func parseBytes(t testing.TB, body string) (all []pair, cursor string, complete bool) {
	t.Helper()
	b := []byte(body)
	take := func() string {
		n := binary.BigEndian.Uint32(b)
		s := string(b[4 : 4+n])
		b = b[4+n:]
		return s
	}
	for len(b) > 0 {
		if binary.BigEndian.Uint32(b) == 1<<32-1 {
			b = b[4:]
			cursor = take()
			return all, cursor, len(b) == 0
		}
		all = append(all, pair{take(), take()})
	}
	return all, "", false
}

var scanFormats = map[string]func(t testing.TB, body string) ([]pair, string, bool){
	"application/x-ndjson":     parseLines,
	"application/octet-stream": parseBytes,
}

// wantPairs returns the records from start up to end, in order.
func wantPairs(records map[string]string, prefix, start, end string) (all []pair) {
	for _, k := range slices.Sorted(maps.Keys(records)) {
		if strings.HasPrefix(k, prefix) && k >= start && (end == "" || k < end) {
			all = append(all, pair{k, records[k]})
		}
	}
	return all
}

func samePairs(t testing.TB, what string, got, want []pair) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d records, want %d", what, len(got), len(want))
	}
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Fatalf("%s: record %d is %.60q: %.60q, want %.60q: %.60q", what, i, got[i].key, got[i].value, want[i].key, want[i].value)
		}
	}
}

// Ordered reads in every format, from a node that holds the records and from one that asks it, also in pieces of which each
// comes from the other node.
func TestScan(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	records := oddRecords(rnd)
	records["large text"] = strings.Repeat("ü\"\\\n€😀", 20<<10)
	records["large text, cut"] = strings.Repeat("€", 40<<10)[:100<<10]
	records["k, large"] = strings.Repeat("x", 65<<10)
	holder := start(t, catalogOf(t, records), testOptions{})
	asker := startAsker(t, proxy.Options{Timeout: patience}, holder.addr)
	nodes := []*running{holder, asker}
	for _, r := range [][3]string{{"", "", ""}, {"k", "", ""}, {"", "k1", "k2"}, {"k1", "k15", ""}, {"\xff", "", ""}, {"", "x", "a"}, {"nothing", "", ""}, {"", "", "\x00"}} {
		want := wantPairs(records, r[0], r[1], r[2])
		query := fmt.Sprintf("/db?prefix=%s&start=%s&end=%s", escapeKey(r[0]), escapeKey(r[1]), escapeKey(r[2]))
		for i, s := range nodes {
			for accept, parse := range scanFormats {
				what := fmt.Sprintf("node %d, %s, %s", i, query, accept)
				got := s.get(t, query, "Accept: "+accept)
				if got.status != 200 || got.header.Get("Content-Type") != accept || got.header.Get("X-Sequins-Version") != "v1" {
					t.Errorf("%s: %d %v", what, got.status, got.header)
				}
				all, cursor, complete := parse(t, got.body)
				if cursor != "" || !complete {
					t.Errorf("%s: cursor %q, complete: %v", what, cursor, complete)
				}
				samePairs(t, what, all, want)
				pieces(t, what, nodes, query, accept, want, 30+rnd.IntN(200))
			}
			if got := s.get(t, strings.Replace(query, "?", "?count&", 1)); got.status != 200 || got.body != fmt.Sprintf(`{"version":"v1","count":%d}`+"\n", len(want)) {
				t.Errorf("node %d, %s: %d %s", i, query, got.status, got.body)
			}
		}
	}
	for i, s := range nodes {
		if got := s.get(t, "/db/?count="); got.body != fmt.Sprintf(`{"version":"v1","count":%d}`+"\n", len(records)) || got.header.Get("Content-Type") != "application/json" {
			t.Errorf("node %d: %+v", i, got)
		}
		got := s.get(t, "/db?keys_only&prefix=k1")
		var want strings.Builder
		n := 0
		for _, p := range wantPairs(records, "k1", "", "") {
			fmt.Fprintf(&want, `{"key":"%s"}`+"\n", p.key)
			n++
		}
		fmt.Fprintf(&want, `{"version":"v1","records":%d,"cursor":null}`+"\n", n)
		if got.body != want.String() {
			t.Errorf("node %d, keys only: %.300s", i, got.body)
		}
	}
}

func escapeKey(k string) string { return strings.ReplaceAll(url.QueryEscape(k), "+", "%20") }

// pieces reads a range with a limit, each piece from the next node.
func pieces(t *testing.T, what string, nodes []*running, query, accept string, want []pair, limit int) {
	t.Helper()
	var all []pair
	for i, cursor := 0, ""; ; i++ {
		target := fmt.Sprintf("%s&limit=%d", query, limit)
		if cursor != "" {
			target += "&after=" + cursor
		}
		if cursor != "" && i%2 == 0 {
			target = "/db?after=" + cursor // without the range and the limit
		}
		got := nodes[i%2].get(t, target, "Accept: "+accept)
		some, next, complete := scanFormats[accept](t, got.body)
		if got.status != 200 || !complete || next != "" && len(some) != limit {
			t.Fatalf("%s: %d, %d records, complete: %v", what, got.status, len(some), complete)
		}
		all = append(all, some...)
		if cursor = next; cursor == "" {
			break
		}
	}
	samePairs(t, what+", in pieces", all, want)
}

// Requests that are not ordered reads, and malformed ones.
func TestScanRequests(t *testing.T) {
	s := start(t, catalogOf(t, map[string]string{"a": "1", "b": "2", "a+b": "3", "a b": "4"}), testOptions{})
	for target, want := range map[string]string{
		"/db?limt=1&prefix=a":                       "unknown parameter",
		"/db?prefix=a&partitions":                   "unknown parameter",
		"/db?prefix=a&key=a":                        "unknown parameter",
		"/db?explain&count":                         "unknown parameter",
		"/db?limit=0":                               "limit must be",
		"/db?limit=":                                "limit must be",
		"/db?limit":                                 "limit must be",
		"/db?limit=-1":                              "limit must be",
		"/db?limit=%2B1":                            "limit must be",
		"/db?limit=9223372036854775808":             "limit must be",
		"/db?limit=1.0":                             "limit must be",
		"/db?limit=1&limit=2":                       "the parameter limit is repeated",
		"/db?prefix=%4":                             `the parameter "prefix"`,
		"/db?prefix=%zz":                            `the parameter "prefix"`,
		"/db?keys_only=no":                          "keys_only has no value",
		"/db?count=false":                           "count has no value",
		"/db?count&limit=1":                         "count is combined",
		"/db?count&after=x":                         "count is combined",
		"/db?count&keys_only":                       "count is combined",
		"/db?after=":                                "after is empty",
		"/db?after=nonsense":                        "after is not a cursor",
		"/db?after=AAAA%0A":                         "after is not a cursor",
		"/db?proxy=v1&prefix=a":                     "proxy and page",
		"/db?page=AAAA":                             "malformed parameter page",
		"/db?proxy=v1&page=AAAA":                    "malformed parameter page",
		"/db?start=" + strings.Repeat("%00", 65538): "start is longer than 65537 bytes",
	} {
		got := s.get(t, target)
		if got.status != 400 || !strings.HasPrefix(got.body, want) || strings.Count(got.body, "\n") != 1 {
			t.Errorf("%.60s: %d %s", target, got.status, got.body)
		}
	}
	for target, want := range map[string]string{
		"/db?prefix=a%2b":                        `{"key":"a+b","value":"3"}`,
		"/db?prefix=a+":                          `{"key":"a b","value":"4"}`,
		"/db?%70refix=a%20b":                     `{"key":"a b","value":"4"}`,
		"/db?start=b&&keys_only=1":               `{"key":"b"}`,
		"/db/?end=a+&keys_only=true":             `{"key":"a"}`,
		"/db?limit=1":                            `{"key":"a","value":"1"}`,
		"http://elsewhere/db?start=b":            `{"key":"b","value":"2"}`,
		"/db?limit=0000000000000000001":          `{"key":"a","value":"1"}`,
		"/db?limit=9223372036854775807&prefix=b": `{"key":"b","value":"2"}`,
	} {
		if got := s.get(t, target); got.status != 200 || strings.SplitN(got.body, "\n", 2)[0] != want || strings.Count(got.body, "\n") != 2 {
			t.Errorf("%s: %d %s", target, got.status, got.body)
		}
	}
	if got, want := s.get(t, "/db?limt=1"), s.get(t, "/db"); got.status != want.status || got.body != want.body {
		t.Errorf("the status page: %d %s", got.status, got.body)
	}
	if got := s.get(t, "/nodb?prefix="); got.status != 404 || got.body != "no such db\n" {
		t.Errorf("no db: %d %s", got.status, got.body)
	}
	if got := s.get(t, "/perhaps?count"); got.status != 503 || got.header.Get("Retry-After") == "" {
		t.Errorf("not ready: %d %s", got.status, got.body)
	}
	if got := s.do(t, "PUT", "/db?prefix="); got.status != 405 {
		t.Errorf("PUT: %d %s", got.status, got.body)
	}
	for _, target := range []string{"/db?prefix=", "/db?count"} {
		if got := s.do(t, "HEAD", target); got.status != 200 || got.header.Get("X-Sequins-Version") != "v1" || got.header.Get("Content-Type") == "" {
			t.Errorf("HEAD %s: %+v", target, got)
		}
	}
}

// Sessions of ordered reads, and cursors of versions that have gone.
func TestScanSessions(t *testing.T) {
	set := version.NewSet("db")
	versions.Activate(t, set, versionOf(t, "db", "v2", 1, map[string]string{"a": "1", "b": "2"}))
	s := start(t, &catalog{sets: map[string]*version.Set{"db": set}}, testOptions{})
	_, cursor, _ := parseBytes(t, s.get(t, "/db?limit=1", "Accept: application/octet-stream").body)
	for _, test := range []struct {
		target string
		header string
		status int
	}{
		{"/db?prefix=", "X-Sequins-At-Least: v2", 200},
		{"/db?prefix=", "X-Sequins-At-Least: v3", 503},
		{"/db?count", "X-Sequins-Version: v1", 412},
		{"/db?after=" + cursor, "X-Sequins-Version: v2", 200},
		{"/db?after=" + cursor, "X-Sequins-Version: v1", 412},
		{"/db?after=" + cursor, "X-Sequins-At-Least: v3", 410},
	} {
		if got := s.get(t, test.target, test.header); got.status != test.status {
			t.Errorf("%s, %s: %d %s", test.target, test.header, got.status, got.body)
		}
	}
	versions.Activate(t, set, versionOf(t, "db", "v3", 1, map[string]string{"b": "3"}))
	if got := s.get(t, "/db?after="+cursor); got.status != 200 || !strings.HasPrefix(got.body, `{"key":"b","value":"2"}`) {
		t.Errorf("of a version that is still there: %d %s", got.status, got.body)
	}
	closeVersion(t, set.Remove(contents.In("v2")))
	if got := s.get(t, "/db?after="+cursor); got.status != 410 || !strings.HasPrefix(got.body, "the version of the cursor") {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// manyRecords are n records of the same size.
func manyRecords(n, size int) map[string]string {
	records := make(map[string]string, n)
	for i := range n {
		records[fmt.Sprintf("key-%07d", i)] = noise(uint64(i), size)
	}
	return records
}

// A damaged block breaks the answer off where others cannot help, before the first byte with a status.
func TestScanDamage(t *testing.T) {
	records := manyRecords(500, 1000)
	for _, test := range []struct {
		where  string // the record that is damaged
		status int
	}{{"key-0000000", 500}, {"key-0000400", 200}} {
		set := damagedOf(t, version.Info{DB: "db", Content: contents.Of("v1"), Partitions: 1, LastModified: modified, Following: version.Solo{}}, records, records[test.where][100:200])
		m := metrics.New()
		s := start(t, &catalog{sets: map[string]*version.Set{"db": set}}, testOptions{Metrics: m.Server})
		c := s.dial(t)
		io.WriteString(c, "GET /db?start= HTTP/1.1\r\nHost: x\r\n\r\n")
		resp := readHeader(t, bufio.NewReader(c))
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if resp.StatusCode != test.status || test.status == 200 && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: %d, %d bytes, %v", test.where, resp.StatusCode, len(body), err)
		}
		if bytes.Contains(body, []byte(`"records"`)) {
			t.Errorf("%s: a last line", test.where)
		}
		expect.Eventually(t, "the request to be counted", func() bool {
			return strings.Contains(scrapeText(t, m), `sequins_requests_total{code="500",db="db",route="scan"} 1`)
		})
	}
}

// Another node's requests for pages are answered from local partitions, and only with the secret.
func TestScanOfPeers(t *testing.T) {
	holder := start(t, catalogOf(t, map[string]string{"a": "1"}), testOptions{PeerSecret: "secret"})
	var asked string
	set := version.NewSet("db")
	versions.Activate(t, set, version.New(version.Info{DB: "db", Content: contents.Of("v1"), Partitions: 2, LastModified: modified, Following: peersOnly{peers: []string{"p:1"}}}))
	asker := start(t, &catalog{sets: map[string]*version.Set{"db": set}}, testOptions{Proxy: proxyFunc(func(q *proxy.Query) (*proxy.Answer, error) {
		asked = string(q.Path) + "?proxy=" + q.Version + "&" + string(q.Params)
		return nil, proxy.ErrNoPeers
	})})
	if got := asker.get(t, "/db?prefix=a"); got.status != 502 {
		t.Errorf("%+v", got)
	}
	if got := holder.get(t, asked); got.status != 403 {
		t.Errorf("without the secret: %+v", got)
	}
	const secret = wire.Secret + ": secret"
	if got := holder.get(t, asked, secret); got.status != 200 || got.body != "\x00\x00\x00\x01a\x00\x00\x00\x011\xff\xff\xff\xff\x00" || got.header.Get("X-Sequins-Version") != "v1" {
		t.Errorf("%+v", got)
	}
	if got := holder.get(t, strings.Replace(asked, "proxy=v1", "proxy=v2", 1), secret); got.status != 501 {
		t.Errorf("of another version: %+v", got)
	}
	if got := asker.get(t, asked); got.status != 501 {
		t.Errorf("of a node that does not hold it: %+v", got)
	}
}

// FuzzScanQuery parses anything.
func FuzzScanQuery(f *testing.F) {
	for _, q := range []string{"prefix=a&start=%00&end=b&limit=10&keys_only", "count", "after=AAAA", "proxy=v&page=AQAA", "limit=1&&", "=&="} {
		f.Add(q)
	}
	f.Fuzz(func(t *testing.T, query string) {
		q, err := parseScan(&target{query: []byte(query)})
		if err != nil {
			if s := err.Error(); strings.ContainsAny(s, "\r\n") {
				t.Errorf("%q: %q", query, s)
			}
			return
		}
		if q.Limit < 0 || len(q.Prefix) > maxBound || len(q.Start) > maxBound || len(q.End) > maxBound {
			t.Errorf("%q: %+v", query, q)
		}
	})
}
