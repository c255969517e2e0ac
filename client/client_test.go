package client_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"sequins/client"
	"sequins/test/expect"
)

// odd are records whose keys and values need care on their way.
var odd = map[string]string{
	"apple": "a fruit", "empty": "", "": "of the empty key", "a/b": "slash", "a//b": "slashes", "..": "dots", ".": "dot", "?": "question",
	"ключ": "non-ASCII", "\xff\x00\r\n": "binary \x00\xff", "a b+%41": "escapes", "#": "hash", strings.Repeat("k", 1000): strings.Repeat("v", 100_000),
}

func TestGet(t *testing.T) {
	f := startFake(t, "v1", odd)
	c := newClient(t, client.Options{Token: "secret"}, f)
	for key, want := range odd {
		v, err := c.Get(t.Context(), "db", []byte(key))
		if err != nil || string(v.Data) != want || v.Version != "v1" || v.Data == nil {
			t.Errorf("%.20q: %.50q of %s, %v", key, v.Data, v.Version, err)
		}
	}
	v, err := c.Get(t.Context(), "db", []byte("absent"))
	expect.Error(t, "an absent key", err, client.ErrNotFound)
	if v.Version != "v1" || v.Data != nil {
		t.Errorf("an absent key: %+v", v)
	}
	for _, r := range f.requests {
		if r.Header.Get("Authorization") != "Bearer secret" {
			t.Errorf("%s has no token", r.URL)
		}
	}
}

func TestMultiGet(t *testing.T) {
	f := startFake(t, "v1", odd)
	c := newClient(t, client.Options{}, f)
	keys := append(sortedKeys(odd), []byte("absent"))
	b, err := c.MultiGet(t.Context(), "db", keys)
	expect.NoError(t, err)
	if len(b.Values) != len(keys) || b.Version != "v1" {
		t.Fatalf("%d values of %q", len(b.Values), b.Version)
	}
	for i, key := range keys {
		want, there := odd[string(key)]
		if string(b.Values[i]) != want || (b.Values[i] != nil) != there {
			t.Errorf("%.20q: %.50q", key, b.Values[i])
		}
	}
	if b, err := c.MultiGet(t.Context(), "db", nil); err != nil || len(b.Values) != 0 {
		t.Errorf("no keys: %v, %v", b, err)
	}
}

func TestInvalidArguments(t *testing.T) {
	f := startFake(t, "v1", odd)
	c := newClient(t, client.Options{}, f)
	long := make([]byte, client.MaxKey+1)
	for _, db := range []string{"", "a/b", "../x", "a\r\nHost: y", "_db", strings.Repeat("x", 256)} {
		_, err := c.Get(t.Context(), db, []byte("k"))
		expect.Error(t, db, err, client.ErrInvalid)
	}
	_, err := c.Get(t.Context(), "db", long)
	expect.Error(t, "a long key", err, client.ErrInvalid)
	_, err = c.MultiGet(t.Context(), "db", [][]byte{[]byte("k"), long})
	expect.Error(t, "a batch with a long key", err, client.ErrInvalid)
	if len(f.requests) > 0 {
		t.Errorf("%d requests were sent", len(f.requests))
	}
}

func TestInvalidOptions(t *testing.T) {
	for name, o := range map[string]client.Options{
		"no address": {}, "no port": {Addrs: []string{"host"}}, "path": {Addrs: []string{"http://host:1/x"}}, "scheme": {Addrs: []string{"ftp://host:1"}},
		"user": {Addrs: []string{"http://u:p@host:1"}}, "two schemes": {Addrs: []string{"http://host:1", "https://host:2"}},
		"port 0": {Addrs: []string{"host:0"}}, "named port": {Addrs: []string{"host:http"}}, "space": {Addrs: []string{"ho st:1"}},
		"token": {Addrs: []string{"host:1"}, Token: "a\r\nb"},
	} {
		if c, err := client.New(o); err == nil {
			t.Errorf("%s is accepted", name)
			c.Close()
		}
	}
	for _, addr := range []string{"host:1", "http://host:1", "http://host:1/", "https://[::1]:9599", "10.0.0.1:9599"} {
		c, err := client.New(client.Options{Addrs: []string{addr}})
		if err != nil {
			t.Error(err)
			continue
		}
		c.Close()
	}
}

// What nodes refuse has a reason that programs can tell.
func TestRefusals(t *testing.T) {
	for status, want := range map[int]error{401: client.ErrDenied, 403: client.ErrDenied, 413: client.ErrTooLarge, 502: client.ErrUnavailable, 400: client.ErrUnavailable, 302: client.ErrUnavailable} {
		f := startFake(t, "v1", odd)
		f.misbehave(func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Location", "/elsewhere")
			http.Error(w, "no", status)
			return true
		})
		_, err := newClient(t, client.Options{}, f).Get(t.Context(), "db", []byte("k"))
		expect.Error(t, http.StatusText(status), err, want)
		if f.asked("/elsewhere") > 0 {
			t.Error("the client has followed a redirect")
		}
	}
	_, err := newClient(t, client.Options{}, startFake(t, "v1", odd)).Get(t.Context(), "other", []byte("k"))
	expect.Error(t, "no such db", err, client.ErrNoDB)
}

// An error says everything once.
func TestErrorsAreShort(t *testing.T) {
	f := startFake(t, "v1", odd)
	c := newClient(t, client.Options{}, f)
	_, err := c.Get(t.Context(), "other", []byte("k"))
	if want := "reading other: no such database; " + f.addr + `: status 404: "no such db"`; fmt.Sprint(err) != want {
		t.Errorf("of no database: %v", err)
	}
	gone := httptest.NewServer(f)
	gone.Close()
	addr := gone.Listener.Addr().String()
	_, err = newClient(t, client.Options{}, &fake{addr: addr}).Get(t.Context(), "db", []byte("k"))
	if want := "reading db: no node gave a usable answer; " + addr + ": connect: connection refused"; fmt.Sprint(err) != want {
		t.Errorf("of no node: %v", err)
	}
}

// Close ends calls, and a closed client does nothing.
func TestClose(t *testing.T) {
	f := startFake(t, "v1", odd)
	asked := make(chan struct{}, 1)
	f.misbehave(func(w http.ResponseWriter, r *http.Request) bool {
		select {
		case asked <- struct{}{}:
		default:
		}
		return hang(w, r)
	})
	c := newClient(t, client.Options{AttemptTimeout: time.Hour, Timeout: time.Hour}, f)
	ended := make(chan error)
	go func() {
		_, err := c.Get(context.Background(), "db", []byte("k"))
		ended <- err
	}()
	<-asked
	c.Close()
	expect.Error(t, "a call", <-ended, client.ErrClosed)
	_, err := c.Get(t.Context(), "db", []byte("k"))
	expect.Error(t, "a later call", err, client.ErrClosed)
	_, err = c.MultiGet(t.Context(), "db", [][]byte{[]byte("k")})
	expect.Error(t, "a later batch", err, client.ErrClosed)
	c.Close()
}

// The error of the context is reported with the state of the attempts.
func TestContext(t *testing.T) {
	f := startFake(t, "v1", odd)
	f.misbehave(hang)
	c := newClient(t, client.Options{}, f)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := c.Get(ctx, "db", []byte("k"))
	expect.Error(t, "a deadline", err, context.DeadlineExceeded)
	ctx, cancel = context.WithCancel(t.Context())
	cancel()
	_, err = c.Get(ctx, "db", []byte("k"))
	expect.Error(t, "a canceled context", err, context.Canceled)
	c = newClient(t, client.Options{Timeout: 20 * time.Millisecond}, f)
	_, err = c.MultiGet(t.Context(), "db", [][]byte{[]byte("k")})
	expect.Error(t, "Options.Timeout", err, context.DeadlineExceeded)
}

// A client that cannot reach the nodes of the map does not ask for it.
func TestSeedsOnly(t *testing.T) {
	f, other := startFake(t, "v1", odd), startFake(t, "v1", odd)
	f.say(1, other.addr)
	c := newClient(t, client.Options{SeedsOnly: true}, f)
	for range 20 {
		_, err := c.Get(t.Context(), "db", []byte("apple"))
		expect.NoError(t, err)
	}
	if f.asked("/db/?partitions") > 0 || len(other.requests) > 0 {
		t.Errorf("%d requests for the map, %d to its node", f.asked("/db/?partitions"), len(other.requests))
	}
}

// A call waits for one of the client's own connections for longer than AttemptTimeout: the node is not silent meanwhile.
func TestWaitForConnection(t *testing.T) {
	f := startFake(t, "v1", odd)
	began := make(chan struct{})
	begin := sync.OnceFunc(func() { close(began) })
	f.misbehave(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/db/large" {
			return false
		}
		w.Header().Set("X-Sequins-Version", "v1")
		w.Header().Set("Content-Length", "50")
		for range 50 {
			io.WriteString(w, "x")                //nolint:errcheck // the test fails if the client has gone
			http.NewResponseController(w).Flush() //nolint:errcheck // likewise
			begin()
			time.Sleep(50 * time.Millisecond) // a slow network
		}
		return true
	})
	c := newClient(t, client.Options{MaxConnsPerNode: 1, AttemptTimeout: 2 * time.Second, Timeout: time.Minute, SeedsOnly: true}, f)
	large := make(chan error)
	go func() {
		_, err := c.Get(t.Context(), "db", []byte("large"))
		large <- err
	}()
	<-began
	_, err := c.Get(t.Context(), "db", []byte("apple"))
	expect.NoError(t, err)
	expect.NoError(t, <-large)
	if n := c.Stats().Attempts; n != 2 {
		t.Errorf("%d requests for two calls", n)
	}
}

// Options.Transport may send the requests by way of a proxy, and keys arrive as they are.
func TestProxy(t *testing.T) {
	f := startFake(t, "v1", odd)
	u, err := url.Parse("http://" + f.addr)
	expect.NoError(t, err)
	transport := &http.Transport{Proxy: http.ProxyURL(u)}
	defer transport.CloseIdleConnections()
	c, err := client.New(client.Options{Addrs: []string{"node.invalid:9599"}, SeedsOnly: true, Transport: transport})
	expect.NoError(t, err)
	defer c.Close()
	for key, want := range odd {
		v, err := c.Get(t.Context(), "db", []byte(key))
		if err != nil || string(v.Data) != want {
			t.Errorf("%.20q: %.20q, %v", key, v.Data, err)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.requests {
		if r.URL.Scheme != "http" || r.Host != "node.invalid:9599" {
			t.Errorf("the proxy receives %.80s of %s", r.RequestURI, r.Host)
		}
	}
}

// Options.Transport may request compression and undo it, as that of net/http does by default. An answer that is cut off is still none.
func TestTransportThatDecompresses(t *testing.T) {
	f := startFake(t, "v1", nil)
	var whole bytes.Buffer
	z := gzip.NewWriter(&whole)
	z.Write(bytes.Repeat([]byte("value"), 1000)) //nolint:errcheck // memory
	z.Close()                                    //nolint:errcheck // memory
	cut := 0
	f.misbehave(func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("X-Sequins-Version", "v1")
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Content-Length", strconv.Itoa(whole.Len()-cut))
		w.Write(whole.Bytes()[:whole.Len()-cut]) //nolint:errcheck // the client may have gone
		return true
	})
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	c := newClient(t, client.Options{Transport: transport, SeedsOnly: true}, f)
	if v, err := c.Get(t.Context(), "db", []byte("k")); err != nil || len(v.Data) != 5000 {
		t.Errorf("%d bytes, %v", len(v.Data), err)
	}
	cut = 4
	if v, err := c.Get(t.Context(), "db", []byte("k")); err == nil {
		t.Errorf("%d bytes of an answer that is cut off", len(v.Data))
	}
}
