package server

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sequins/observe/metrics"
	"sequins/proxy"
	"sequins/test/contents"
	"sequins/test/expect"
	"sequins/test/versions"
	"sequins/version"
)

// tallied counts what a listener accepts.
type tallied struct {
	net.Listener
	n atomic.Int64
}

func (c *tallied) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err == nil {
		c.n.Add(1)
	}
	return conn, err
}

// startCounting serves a catalogue, and counts its connections.
func startCounting(t testing.TB, c testCatalog, o testOptions) (*running, *tallied) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	counted := &tallied{Listener: ln}
	return startOn(t, counted, c, o), counted
}

// newProxy returns a client of peers that may be of upstream's kind.
func newProxy(o proxy.Options) *proxy.Client {
	if o.StageTimeout == 0 {
		o.StageTimeout = o.Timeout / 2
	}
	o.Upstream = func(string) bool { return true }
	o.Metrics, o.Logger = new(metrics.Proxy), slog.New(slog.DiscardHandler)
	return proxy.New(o)
}

// startAsker serves db in v1 from what peers have.
func startAsker(t testing.TB, o proxy.Options, peers ...string) *running {
	t.Helper()
	return startAskerWith(t, testOptions{}, o, peers...)
}

func startAskerWith(t testing.TB, server testOptions, o proxy.Options, peers ...string) *running {
	t.Helper()
	set := version.NewSet("db")
	versions.Activate(t, set, version.New(version.Info{DB: "db", Content: contents.Of("v1"), Partitions: 2, LastModified: modified, Following: peersOnly{peers: peers}}))
	p := newProxy(o)
	server.Proxy = p
	s := start(t, &catalog{sets: map[string]*version.Set{"db": set}}, server)
	t.Cleanup(p.Close) // before the server, which waits for what it asks
	return s
}

// A node answers from a peer as that does itself.
func TestProxiedAnswersAreTheSame(t *testing.T) {
	records := map[string]string{"a": "value", "empty": "", "64K": noise(1, 64<<10), "more": noise(2, 64<<10+1), "large": noise(3, 3<<20),
		"a//../b%2F+#": "odd", "\xff\x00 ?": "odder"}
	holder, accepted := startCounting(t, catalogOf(t, records), testOptions{})
	asker := startAsker(t, proxy.Options{Timeout: patience}, holder.addr)
	etag := holder.get(t, "/db/a").header.Get("Etag")
	requests := [][]string{
		{"GET", "/db/a"}, {"GET", "/db/empty"}, {"GET", "/db/64K"}, {"GET", "/db/more"}, {"GET", "/db/large"}, {"GET", "/db/absent"},
		{"HEAD", "/db/a"}, {"HEAD", "/db/large"}, {"HEAD", "/db/absent"},
		{"GET", "/db/a//../b%252F+#"}, {"GET", "/db/a%2F%2F%2e./b%252F%2B%23?x=y"}, {"GET", "/db/%ff%00%20%3F"}, {"GET", "http://elsewhere/db/a"},
		{"GET", "/db/" + strings.Repeat("%61", 60<<10)},
		{"GET", "/db/a", "Range: bytes=1-2"}, {"GET", "/db/large", "Range: bytes=70000-"}, {"GET", "/db/a", "Range: bytes=100-"}, {"GET", "/db/a", "Range: bytes=0-1,3-4"},
		{"GET", "/db/a", "If-None-Match: " + etag}, {"GET", "/db/a", `If-None-Match: "x"`, "If-None-Match: " + etag}, {"HEAD", "/db/a", "If-None-Match: " + etag},
		{"GET", "/db/a", `If-Match: "x"`}, {"GET", "/db/a", `If-Range: "x"`, "Range: bytes=1-2"}, {"GET", "/db/a", "If-Range: " + etag, "Range: bytes=1-2"},
		{"GET", "/db/a", "If-Modified-Since: " + modified.Format(http.TimeFormat)}, {"GET", "/db/a", "If-Unmodified-Since: Thu, 01 Jan 1970 00:00:00 GMT"},
	}
	before := accepted.n.Load()
	for _, r := range requests {
		want := holder.do(t, r[0], r[1], r[2:]...)
		got := asker.do(t, r[0], r[1], r[2:]...)
		if peer := got.header.Get("X-Sequins-Proxied-To"); peer != holder.addr {
			t.Errorf("%.100q: proxied to %q", r, peer)
		}
		got.header.Del("X-Sequins-Proxied-To")
		got.header.Del("Date")
		want.header.Del("Date")
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(answer{})); diff != "" {
			t.Errorf("%.100q (-direct +proxied):\n%.2000s", r, diff)
		}
	}
	// Of the direct requests each has its own connection. A connection is given back a moment after the answer, so that the
	// next request may need another one.
	if n := accepted.n.Load() - before - int64(len(requests)); n < 1 || n > 2 {
		t.Errorf("%d connections for %d requests to the peer", n, len(requests))
	}
}

// However many requests they send, there are about as many connections as clients: one may be asked for before another has
// been given back.
func TestNoConnectionPerRequest(t *testing.T) {
	records := map[string]string{}
	for i := range 100 {
		records[fmt.Sprint(i)] = strings.Repeat(fmt.Sprint(i, " "), i*i)
	}
	holder, accepted := startCounting(t, catalogOf(t, records), testOptions{})
	asker := startAsker(t, proxy.Options{Timeout: patience}, holder.addr)
	const clients, each = 8, 500
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			c, err := net.Dial("tcp", asker.addr)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			r := bufio.NewReader(c)
			for i := range each {
				key := fmt.Sprint(i % 100)
				fmt.Fprintf(c, "GET /db/%s HTTP/1.1\r\nHost: x\r\n\r\n", key)
				resp, err := http.ReadResponse(r, nil)
				if err != nil {
					t.Error(err)
					return
				}
				body, err := io.ReadAll(resp.Body)
				if err != nil || resp.StatusCode != 200 || string(body) != records[key] {
					t.Errorf("%s: %d, %d bytes, %v", key, resp.StatusCode, len(body), err)
				}
			}
		})
	}
	wg.Wait()
	if n := accepted.n.Load(); n > 2*clients {
		t.Errorf("%d connections for %d clients", n, clients)
	}
}

// A peer that lacks the version is passed over; nobody left is 502, nobody in
// time 504.
func TestPeersThatCannotHelp(t *testing.T) {
	set := version.NewSet("db")
	versions.Activate(t, set, versionOf(t, "db", "v0", 2, map[string]string{"k": "old"}))
	behind := start(t, &catalog{sets: map[string]*version.Set{"db": set}}, testOptions{})
	holder := start(t, catalogOf(t, map[string]string{"k": "new"}), testOptions{})
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	t.Cleanup(func() { silent.Close() })
	o := proxy.Options{Timeout: patience, StageTimeout: 20 * time.Millisecond}
	asker := startAsker(t, o, behind.addr, holder.addr, silent.Addr().String())
	for range 20 {
		if got := asker.get(t, "/db/k"); got.status != 200 || got.body != "new" {
			t.Errorf("%+v", got)
		}
	}
	asker = startAsker(t, o, behind.addr)
	if got := asker.get(t, "/db/k"); got.status != 502 || got.header.Get("X-Sequins-Version") != "v1" {
		t.Errorf("%+v", got)
	}
	asker = startAsker(t, proxy.Options{Timeout: 50 * time.Millisecond}, silent.Addr().String())
	if got := asker.get(t, "/db/k"); got.status != 504 || got.header.Get("X-Sequins-Version") != "v1" {
		t.Errorf("%+v", got)
	}
}

// A proxied GET allocates what the race and the answer are kept in, on the node
// that asks, and nothing on the other.
func TestProxiedGetAllocations(t *testing.T) {
	holder := start(t, catalogOf(t, map[string]string{"small": strings.Repeat("x", 100)}), testOptions{})
	asker := startAsker(t, proxy.Options{Timeout: patience}, holder.addr)
	for _, target := range []string{"/db/small", "/db/absent"} {
		c := newClient(t, asker.addr, target)
		if n := testing.AllocsPerRun(1000, func() { c.ask(t) }); n > 3 && !raceEnabled {
			t.Errorf("GET %s: %v allocations", target, n)
		}
	}
}

// A request to the node that does not have the key, over loopback, both nodes' and the client's share included.
func BenchmarkProxiedGet(b *testing.B) {
	records := map[string]string{"100": strings.Repeat("x", 100), "10000": strings.Repeat("x", 10000)}
	holder := start(b, catalogOf(b, records), testOptions{Metrics: metrics.New().Server})
	asker := startAsker(b, proxy.Options{Timeout: patience}, holder.addr)
	for _, key := range []string{"100", "10000", "absent"} {
		b.Run(key, func(b *testing.B) {
			c := newClient(b, asker.addr, "/db/"+key)
			b.ReportAllocs()
			for b.Loop() {
				c.ask(b)
			}
		})
	}
}

// A peer that fails before the client has got a byte of a large value is replaced
// by another one; without one the client gets 502, and no half an answer.
func TestPeerFailsBeforeTheFirstByte(t *testing.T) {
	value := noise(1, 1<<20)
	holder := start(t, catalogOf(t, map[string]string{"k": value}), testOptions{})
	broken := startBroken(t, fmt.Sprintf("HTTP/1.1 200 OK\r\nX-Sequins-Version: v1\r\nContent-Length: %d\r\n\r\n%s", len(value), value[:60<<10]))
	o := proxy.Options{Timeout: patience, StageTimeout: 20 * time.Millisecond}
	for _, header := range []string{"X: plain", "If-None-Match: \"x\""} {
		asker := startAsker(t, o, broken, holder.addr)
		for range 10 {
			if got := asker.get(t, "/db/k", header); got.status != 200 || got.body != value {
				t.Errorf("%s: %d, %d bytes", header, got.status, len(got.body))
			}
		}
		asker = startAsker(t, o, broken)
		if got := asker.get(t, "/db/k", header); got.status != 502 {
			t.Errorf("%s: %d, %d bytes", header, got.status, len(got.body))
		}
	}
}

// startBroken is a peer that sends the same bytes to everybody, and closes.
func startBroken(t *testing.T, raw string) (addr string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	done := make(chan struct{})
	var conns sync.WaitGroup
	go func() {
		defer close(done)
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			conns.Go(func() { // one that is opened ahead sends nothing for a while
				defer c.Close()
				if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
					io.WriteString(c, raw)
				}
			})
		}
	}()
	t.Cleanup(func() { ln.Close(); <-done; conns.Wait() })
	return ln.Addr().String()
}
