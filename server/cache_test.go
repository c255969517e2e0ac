package server

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sequins/internal/content"
	"sequins/observe/metrics"
	"sequins/proxy"
	"sequins/test/contents"
	"sequins/version"
)

// cacheTest is a node without partitions, which asks a holder and keeps its answers.
type cacheTest struct {
	asker, holder *running
	sets          map[string]*version.Set // of the asker and of the holder
	metrics       *metrics.Server         // of the asker
	proxy         *countingProxy
}

// countingProxy counts requests to peers.
type countingProxy struct {
	*proxy.Client
	n atomic.Int64
}

func (p *countingProxy) Fetch(ctx context.Context, q *proxy.Query) (*proxy.Answer, error) {
	p.n.Add(1)
	return p.Client.Fetch(ctx, q)
}

func newCacheTest(t testing.TB, o testOptions) *cacheTest {
	t.Helper()
	c := &cacheTest{sets: map[string]*version.Set{"asker": version.NewSet("db"), "holder": version.NewSet("db")},
		metrics: metrics.New().Server}
	c.holder = start(t, &catalog{sets: map[string]*version.Set{"db": c.sets["holder"]}}, testOptions{ContentType: o.ContentType})
	c.proxy = &countingProxy{Client: proxy.New(proxy.Options{Timeout: patience, Metrics: new(metrics.Proxy)})}
	o.Proxy, o.Metrics = c.proxy, c.metrics
	if o.CacheBytes == 0 {
		o.CacheBytes = 4 << 20
	}
	c.asker = start(t, &catalog{sets: map[string]*version.Set{"db": c.sets["asker"]}}, o)
	t.Cleanup(c.proxy.Close)
	return c
}

// load makes a version current on both nodes.
func (c *cacheTest) load(t testing.TB, of content.Content, records map[string]string) {
	t.Helper()
	info := version.Info{DB: "db", Content: of, Partitions: 2, LastModified: modified, Following: version.Solo{}}
	activate(t, c.sets["holder"], versionWith(t, info, records))
	info.Following = peersOnly{peers: []string{c.holder.addr}}
	activate(t, c.sets["asker"], version.New(info))
}

// requests returns the number of requests to the holder.
func (c *cacheTest) requests() int64 { return c.proxy.n.Load() }

// The second read of a key does not ask the peer, and has the answer of the first to the header, except that it was not
// proxied.
func TestCachedAnswersAreTheSame(t *testing.T) {
	records := map[string]string{"a": "value", "empty": "", "64K": noise(1, 64<<10), "\xff\x00 ?": "odd"}
	c := newCacheTest(t, testOptions{})
	c.load(t, contents.Of("v1"), records)
	for _, target := range []string{"/db/a", "/db/empty", "/db/64K", "/db/absent", "/db/%ff%00%20%3F", "/db/" + strings.Repeat("k", 60<<10)} {
		first := c.asker.get(t, target)
		if peer := first.header.Get("X-Sequins-Proxied-To"); peer != c.holder.addr {
			t.Errorf("%.20s: proxied to %q", target, peer)
		}
		if first.header.Get("X-Sequins-Content") != "" {
			t.Errorf("%.20s: a client gets %q", target, first.header)
		}
		first.header.Del("X-Sequins-Proxied-To")
		first.header.Del("Date")
		before := c.requests()
		for _, general := range []string{"", "?general"} { // by the loop of plain GETs and by net/http
			again := c.asker.get(t, target+general)
			again.header.Del("Date")
			if diff := cmp.Diff(first, again, cmp.AllowUnexported(answer{})); diff != "" {
				t.Errorf("%.20s (-proxied +cached):\n%.1000s", target, diff)
			}
			head := c.asker.do(t, "HEAD", target)
			if head.status != first.status || head.header.Get("Etag") != first.header.Get("Etag") || head.length != first.length || head.body != "" {
				t.Errorf("HEAD %.20s: %+v", target, head)
			}
		}
		if n := c.requests() - before; n > 0 {
			t.Errorf("%.20s: %d requests to the peer", target, n)
		}
	}
}

// Conditional requests, ranges, large values and what is read only by HEAD are not answered from the cache.
func TestWhatIsNotCached(t *testing.T) {
	c := newCacheTest(t, testOptions{})
	c.load(t, contents.Of("v1"), map[string]string{"k": "value", "large": noise(1, 64<<10+1), "head": "value"})
	c.asker.get(t, "/db/k")
	etag := c.asker.get(t, "/db/k").header.Get("Etag")
	requests := []struct {
		method, target, header string
		status                 int
	}{
		{"GET", "/db/k", "If-None-Match: " + etag, 304},
		{"GET", "/db/k", "Range: bytes=1-2", 206},
		{"GET", "/db/large", "X: y", 200},
		{"HEAD", "/db/head", "X: y", 200},
	}
	for _, r := range requests {
		for range 2 {
			before := c.requests()
			got := c.asker.do(t, r.method, r.target, r.header)
			if got.status != r.status || got.header.Get("X-Sequins-Proxied-To") != c.holder.addr || c.requests() != before+1 {
				t.Errorf("%v: %d, %d requests to the peer", r, got.status, c.requests()-before)
			}
		}
	}
	if hits, misses := c.metrics.DB("db").CacheCounts(); hits != 1 || misses != 1+2+2 {
		t.Errorf("%d hits, %d misses", hits, misses)
	}
}

// Versions, and contents of the same name, have separate entries, sessions read those of their version, and a version
// that is loaded again after its removal is not answered from entries of the first.
func TestCacheFollowsVersions(t *testing.T) {
	c := newCacheTest(t, testOptions{})
	want := func(value, proxied string, header ...string) {
		t.Helper()
		got := c.asker.get(t, "/db/k", header...)
		if got.body != value || (got.header.Get("X-Sequins-Proxied-To") != "") != (proxied != "") {
			t.Errorf("%q, proxied to %q; want %q", got.body, got.header.Get("X-Sequins-Proxied-To"), value)
		}
	}
	c.load(t, contents.Of("v1"), map[string]string{"k": "one"})
	want("one", "proxied")
	want("one", "")
	c.load(t, contents.Of("v1", "other files"), map[string]string{"k": "other"})
	want("other", "proxied")
	want("other", "")
	c.load(t, contents.Of("v2"), map[string]string{"k": "two"})
	want("two", "proxied")
	want("two", "")
	want("other", "", "X-Sequins-Version: v1")
	want("two", "", "X-Sequins-At-Least: v2")
	for _, set := range c.sets {
		closeVersion(t, set.Remove(contents.In("v2")))
	}
	c.load(t, contents.Of("v2"), map[string]string{"k": "again"})
	want("again", "proxied")
	want("again", "")
}

// The answer of a peer that does not name its content is not kept: it is of upstream's kind, and may have other files.
func TestUnknownContentIsNotCached(t *testing.T) {
	c := newCacheTest(t, testOptions{})
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Sequins-Version", "v1")
		if r.URL.Path != "/db/k" {
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer upstream.Close()
	activate(t, c.sets["asker"], version.New(version.Info{DB: "db", Content: contents.Of("v1"), Partitions: 2,
		Following: peersOnly{peers: []string{strings.TrimPrefix(upstream.URL, "http://")}}}))
	for i := range int64(3) {
		for _, target := range []string{"/db/k", "/db/absent", "/db?key=k"} {
			c.asker.get(t, target)
		}
		if n := c.requests(); n != 3*(i+1) {
			t.Errorf("%d requests to the peer", n)
		}
	}
}

// A batch requests what no read before has brought. Its own values serve batches and single reads.
func TestCacheOfBatches(t *testing.T) {
	records := map[string]string{}
	for i := range 20 {
		records[fmt.Sprint(i)] = fmt.Sprint("value ", i)
	}
	c := newCacheTest(t, testOptions{})
	c.load(t, contents.Of("v1"), records)
	batch := func(requests int64, want string, keys ...string) {
		t.Helper()
		before := c.requests()
		got := c.asker.get(t, "/db?key="+strings.Join(keys, "&key="), "Accept: application/x-ndjson")
		_, values, _ := strings.Cut(got.body, "\n")
		if got.status != 200 || strings.ReplaceAll(values, "\n", " ") != want || c.requests()-before != requests {
			t.Errorf("%q: %d %q, %d requests to the peer", keys, got.status, got.body, c.requests()-before)
		}
	}
	single := func(requests int64, target string, status int) {
		t.Helper()
		before := c.requests()
		got := c.asker.get(t, target)
		if got.status != status || (got.header.Get("Etag") == "") == (status == 200) || c.requests()-before != requests {
			t.Errorf("%s: %d %q, %d requests to the peer", target, got.status, got.header, c.requests()-before)
		}
	}
	single(1, "/db/1", 200)
	batch(1, `{"value":"value 1"} {"value":"value 2"} null {"value":"value 2"} `, "1", "2", "x", "2")
	batch(0, `{"value":"value 2"} null {"value":"value 1"} `, "2", "x", "1")
	single(0, "/db/x", 404)
	single(0, "/db/2", 200)
	batch(1, `{"value":"value 3"} {"value":"value 2"} `, "3", "2")
	small := newCacheTest(t, testOptions{MaxBatchBytes: 1000})
	small.load(t, contents.Of("v1"), map[string]string{"k": strings.Repeat("x", 600)})
	for range 3 { // the limit is that of the answer, wherever it comes from
		if got := small.asker.get(t, "/db?key=k&key=k"); got.status != http.StatusRequestEntityTooLarge {
			t.Errorf("%d %.20q", got.status, got.body)
		}
		small.asker.get(t, "/db/k")
	}
}

// The media type of a cached value is the one that is configured at the time of the answer.
func TestCachedContentType(t *testing.T) {
	typed := func(name string) func(string) string { return func(string) string { return name } }
	c := newCacheTest(t, testOptions{ContentType: typed("text/a")})
	c.load(t, contents.Of("v1"), map[string]string{"k": "value"})
	c.asker.get(t, "/db/k")
	c.asker.reads.SetContentType(typed("text/b"))
	if got := c.asker.get(t, "/db/k"); got.header.Get("Content-Type") != "text/b" || got.header.Get("X-Sequins-Proxied-To") != "" {
		t.Errorf("%q", got.header)
	}
}

// A cached value is answered while no peer can be reached.
func TestCacheOutlivesPeers(t *testing.T) {
	c := newCacheTest(t, testOptions{})
	info := version.Info{DB: "db", Content: contents.Of("v1"), Partitions: 2, Following: version.Solo{}}
	activate(t, c.sets["holder"], versionWith(t, info, map[string]string{"k": "value"}))
	info.Following = &goingPeers{addr: c.holder.addr}
	activate(t, c.sets["asker"], version.New(info))
	c.asker.get(t, "/db/k")
	info.Following.(*goingPeers).addr = ""
	if got := c.asker.get(t, "/db/k"); got.body != "value" {
		t.Errorf("%+v", got)
	}
	if got := c.asker.get(t, "/db/other"); got.status != 502 {
		t.Errorf("%+v", got)
	}
}

// goingPeers is one peer, until it is gone.
type goingPeers struct {
	version.Solo
	addr string
}

func (p *goingPeers) Peers(int) []string {
	if p.addr == "" {
		return nil
	}
	return []string{p.addr}
}

func TestExplainCached(t *testing.T) {
	c := newCacheTest(t, testOptions{})
	c.load(t, contents.Of("v1"), map[string]string{"k": "value"})
	for _, want := range []string{c.holder.addr, c.holder.addr} { // an explanation asks without the value
		if e := explainOf(t, c.asker, "/db/k?explain"); e.AnsweredBy != want {
			t.Errorf("answered by %q", e.AnsweredBy)
		}
	}
	direct := explainOf(t, c.asker, "/db/k?explain")
	c.asker.get(t, "/db/k")
	direct.AnsweredBy = "cache"
	if diff := cmp.Diff(direct, explainOf(t, c.asker, "/db/k?explain"), untimed); diff != "" {
		t.Errorf("(-proxied +cached):\n%s", diff)
	}
}

func TestCachedGetAllocations(t *testing.T) {
	c := newCacheTest(t, testOptions{})
	c.load(t, contents.Of("v1"), map[string]string{"small": strings.Repeat("x", 100)})
	for _, target := range []string{"/db/small", "/db/absent"} {
		c.asker.get(t, target)
		client := newClient(t, c.asker.addr, target)
		if n := testing.AllocsPerRun(1000, func() { client.ask(t) }); n > 0 && !raceEnabled {
			t.Errorf("GET %s: %v allocations", target, n)
		}
	}
}

// A request for a key of another node that is in the cache, over loopback, the client's share included.
func BenchmarkCachedGet(b *testing.B) {
	c := newCacheTest(b, testOptions{})
	c.load(b, contents.Of("v1"), map[string]string{"100": strings.Repeat("x", 100), "10000": strings.Repeat("x", 10000)})
	for _, key := range []string{"100", "10000", "absent"} {
		b.Run(key, func(b *testing.B) {
			c.asker.get(b, "/db/"+key)
			client := newClient(b, c.asker.addr, "/db/"+key)
			b.ReportAllocs()
			for b.Loop() {
				client.ask(b)
			}
		})
	}
}
