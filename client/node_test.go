package client_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sequins/client"
	"sequins/test/expect"
)

// serveNode answers every request by f.
func serveNode(t *testing.T, f http.HandlerFunc) *client.Node {
	t.Helper()
	s := httptest.NewServer(f)
	c := client.NewNode(client.NodeOptions{URL: s.URL, Silence: time.Second})
	t.Cleanup(func() { c.Close(); s.Close() })
	return c
}

// A user and a password of the URL are sent, and no error and nothing else shows them.
func TestPasswordOfURL(t *testing.T) {
	var answer atomic.Value
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, ok := r.BasicAuth(); !ok || user != "u" || password != "hunter2" {
			t.Errorf("%q %q", user, password)
		}
		answer.Load().(func(http.ResponseWriter, *http.Request))(w, r)
	}))
	defer plain.Close()
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	host, tls := strings.TrimPrefix(plain.URL, "http://"), strings.TrimPrefix(secure.URL, "https://")
	write := func(status int, text string) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			io.WriteString(w, text)
		}
	}
	for _, test := range []struct {
		url    string
		answer func(http.ResponseWriter, *http.Request)
		want   string
	}{
		{"http://u:hunter2@" + host, write(503, "starting"), "http://" + host + " answers with 503"},
		{"http://u:hunter2@" + host, write(404, "none"), "http://" + host + " has no database"},
		{"http://u:hunter2@" + host, write(200, "x"), "http://" + host + " does not answer as sequins does"},
		{"http://u:hunter2@" + host, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "http://" + host + " closes the connection"},
		{"http://u:hunter2@127.0.0.1:1", nil, "http://127.0.0.1:1 refuses the connection"},
		{"https://u:hunter2@" + host, nil, "does not speak TLS: use http://" + host},
		{"http://u:hunter2@" + tls, nil, "http://" + tls + " speaks TLS: use https://" + tls},
		{"https://u:hunter2@" + tls, nil, "https://" + tls + " has a certificate"},
		{"http://u:hunter2@h:1x", nil, "http://h:1x is not the URL of a node"},
		{"http://u:hun/hunter2@h", nil, "http://h is not the URL of a node"},
		{"http://127.0.0.1:1?hunter2", nil, "http://127.0.0.1:1 "},
	} {
		answer.Store(test.answer)
		c := client.NewNode(client.NodeOptions{URL: test.url, Silence: 10 * time.Second})
		_, err := c.Status(t.Context())
		_, derr := c.Diff(t.Context(), "db", "1", "2", false)
		if strings.Contains(test.want, "database") {
			err = derr
		}
		if said := fmt.Sprint(err, derr, c.URL()); err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(said, "hun") {
			t.Errorf("%s\ngot  %v; %v; %s\nwant %s", test.url, err, derr, c.URL(), test.want)
		}
		c.Close()
	}
}

// frames returns lengths and bytes as a node sends them.
func frames(all ...any) (b []byte) {
	for _, f := range all {
		switch f := f.(type) {
		case string:
			b = append(binary.BigEndian.AppendUint32(b, uint32(len(f))), f...)
		case uint32:
			b = binary.BigEndian.AppendUint32(b, f)
		}
	}
	return b
}

const none = uint32(0xffffffff)

// send sends a body in bytes, and if cut, breaks off behind it.
func send(w http.ResponseWriter, body []byte, cut bool) {
	w.Header().Set("X-Sequins-Version", "1")
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Write(body)
	if cut {
		http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}

// scanned reads a range and returns what it has.
func scanned(c *client.Node) (string, *client.Scan, error) {
	s, err := c.Scan(context.Background(), "db", client.Range{}, client.Want{})
	if err != nil {
		return "", nil, err
	}
	defer s.Close()
	var b strings.Builder
	for s.Next() {
		fmt.Fprintf(&b, "%s=", s.Key())
		s.WriteValue(&b)
		b.WriteByte(' ')
	}
	return b.String(), s, s.Err()
}

func TestScan(t *testing.T) {
	whole := frames("a", "1", "b", "", "c", strings.Repeat("x", 100_000), "d", "2", none, "more")
	var body []byte
	cut := false
	c := serveNode(t, func(w http.ResponseWriter, _ *http.Request) { send(w, body, cut) })
	body = whole
	if got, s, err := scanned(c); got != "a=1 b= c="+strings.Repeat("x", 100_000)+" d=2 " || err != nil || s.Cursor() != "more" || s.Version != "1" {
		t.Errorf("%.100q, %v", got, err)
	}
	// Cut off anywhere, at once or by a broken connection, it is never whole.
	for n := 0; n < len(whole); n += 1 + n/50 {
		for _, cut = range []bool{false, true} {
			body = whole[:n]
			if _, _, err := scanned(c); !errors.Is(err, client.ErrUnreachable) || !strings.Contains(err.Error(), "has broken off its answer") {
				t.Errorf("%d bytes, cut %v: %v", n, cut, err)
			}
		}
	}
	cut = false
	for what, odd := range map[string][]byte{
		"more behind the end": append(bytes.Clone(whole), 'x'),
		"a long key":          frames(uint32(65537)),
		"a long cursor":       frames(none, uint32(1<<30)),
		"a strange cursor":    frames(none, "a; touch \x1b[2J"),
	} {
		body = odd
		if _, _, err := scanned(c); !errors.Is(err, client.ErrStrange) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A node that says that a value is long gets no memory for it.
func TestLengthsAreNotBelieved(t *testing.T) {
	c := serveNode(t, func(w http.ResponseWriter, _ *http.Request) { send(w, frames("k", uint32(0x7fffffff)), false) })
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _, err := scanned(c)
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; err == nil || n > 16<<20 {
		t.Errorf("%d bytes, %v", n, err)
	}
}

func TestBatch(t *testing.T) {
	var body []byte
	c := serveNode(t, func(w http.ResponseWriter, r *http.Request) {
		sent, _ := io.ReadAll(r.Body)
		if want := frames("a", "", "c"); !bytes.Equal(sent, want) || r.Method != http.MethodPost || r.URL.Path != "/db" || r.Header.Get("X-Sequins-Version") != "1" {
			t.Errorf("%s %s %q", r.Method, r.URL, sent)
		}
		send(w, body, false)
	})
	read := func() (client.Batch, error) {
		return c.MultiGet(t.Context(), "db", [][]byte{[]byte("a"), {}, []byte("c")}, client.Want{Version: "1"})
	}
	body = frames("x", none, "")
	want := client.Batch{Values: [][]byte{[]byte("x"), nil, {}}, Version: "1"}
	if got, err := read(); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%q, %v", got, err)
	}
	for what, odd := range map[string][]byte{"one value less": frames("x", none), "one value more": frames("x", none, "", "y"), "half a value": frames("x", none, uint32(5))} {
		body = odd
		if _, err := read(); !errors.Is(err, client.ErrStrange) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// Keys are sent as they are, whatever their bytes.
func TestKeysOfNode(t *testing.T) {
	var path string
	c := serveNode(t, func(w http.ResponseWriter, r *http.Request) {
		path = r.RequestURI
		send(w, []byte("v"), false)
	})
	for key, want := range map[string]string{"a b": "/db/a%20b", "..": "/db/%2E%2E", "/": "/db/%2F", "\xff%": "/db/%FF%25", "Az09-_": "/db/Az09-_"} {
		v, err := c.Get(t.Context(), "db", []byte(key), client.Want{})
		expect.NoError(t, err)
		v.Close()
		if path != want {
			t.Errorf("%q is sent as %s, want %s", key, path, want)
		}
	}
}

// What a node answers decides the kind of the error.
func TestKinds(t *testing.T) {
	for _, test := range []struct {
		code          int
		version, text string
		kind          error
		want          string
	}{
		{404, "7", "no such key", client.ErrNotFound, "has no such key in version 7 of db"},
		{404, "", "no such db", client.ErrNoDB, `has no database "db"`},
		{404, "", "version 9 of db is not on this node", client.ErrNoVersion, "answers with 404 Not Found: version 9 of db is not"},
		{401, "", "a token is needed: …", client.ErrDenied, "wants a token: name its file with --token-file"},
		{403, "", "not this one", client.ErrDenied, "answers with 403 Forbidden: not this one; --token-file"},
		{410, "", "gone", client.ErrNoVersion, ""}, {412, "", "gone", client.ErrNoVersion, ""}, {413, "", "max_bytes", client.ErrTooLarge, ""},
		{500, "", "a block cannot be read", client.ErrDamaged, ""},
		{502, "", "", client.ErrUnavailable, ""}, {503, "", "busy", client.ErrUnavailable, ""}, {504, "", "", client.ErrUnavailable, ""},
		{400, "", "bad\x1b[2J", nil, `answers with 400 Bad Request: bad\x1b[2J`},
		{418, "", strings.Repeat("x", 5000), nil, "answers with 418 I'm a teapot"},
		{302, "", "", nil, "answers with 302 Found"},
		{200, "", "v", client.ErrStrange, "does not answer as sequins does"},
	} {
		c := serveNode(t, func(w http.ResponseWriter, _ *http.Request) {
			if test.version != "" {
				w.Header().Set("X-Sequins-Version", test.version)
			}
			w.Header().Set("Location", "http://127.0.0.1:1/")
			w.WriteHeader(test.code)
			io.WriteString(w, test.text+"\nmore")
		})
		_, err := c.Get(t.Context(), "db", []byte("k"), client.Want{})
		var got *client.NodeError
		if !errors.As(err, &got) || got.Kind != test.kind || test.kind != nil && !errors.Is(err, test.kind) || !strings.HasPrefix(err.Error(), c.URL()+" "+test.want) || len(err.Error()) > 300 {
			t.Errorf("%d %.20s: %v", test.code, test.text, err)
		}
	}
}

// A node that is silent is given up, before its answer and in the middle.
func TestSilence(t *testing.T) {
	c := serveNode(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/db/") {
			w.Header().Set("Content-Length", "10")
			send(w, []byte("v"), false)
			http.NewResponseController(w).Flush()
		}
		<-r.Context().Done()
	})
	if _, err := c.Status(t.Context()); !errors.Is(err, client.ErrUnreachable) || !strings.HasSuffix(err.Error(), "has not answered within 1s") {
		t.Errorf("%v", err)
	}
	v, err := c.Get(t.Context(), "db", []byte("k"), client.Want{})
	expect.NoError(t, err)
	defer v.Close()
	if got, err := io.ReadAll(v); string(got) != "v" || !errors.Is(err, client.ErrUnreachable) || !strings.Contains(err.Error(), "has sent nothing for 1s") {
		t.Errorf("%q, %v", got, err)
	}
}

// Something else answers, or nothing does.
func TestUnreachable(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	go func() { // closes every connection
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			conn.Close()
		}
	}()
	ask := func(url string) error {
		c := client.NewNode(client.NodeOptions{URL: url})
		defer c.Close()
		_, err := c.Status(t.Context())
		return err
	}
	base := "http://" + ln.Addr().String()
	if err := ask(base); !errors.Is(err, client.ErrUnreachable) || !strings.Contains(err.Error(), "closes the connection without an answer") {
		t.Errorf("%v", err)
	}
	ln.Close()
	if err := ask(base); !errors.Is(err, client.ErrUnreachable) || !strings.Contains(err.Error(), "refuses the connection") {
		t.Errorf("%v", err)
	}
	if err := ask("http://no-such-host.invalid:1"); !errors.Is(err, client.ErrUnreachable) || !strings.Contains(err.Error(), `no-such-host.invalid`) {
		t.Errorf("%v", err)
	}
	for body, want := range map[string]string{"<html>": "does not answer as sequins does", "{}": "does not answer", `{"dbs":[{}]}`: "does not answer", `{"dbs":{}}`: ""} {
		c := serveNode(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, body) })
		if _, err := c.Status(t.Context()); want == "" && err != nil || want != "" && !errors.Is(err, client.ErrStrange) {
			t.Errorf("%s: %v", body, err)
		}
	}
}

// A command that ends gets the reason of its end, not that of the node.
func TestCanceledRequest(t *testing.T) {
	c := serveNode(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	if _, err := c.Status(ctx); err != context.Canceled {
		t.Errorf("%v", err)
	}
}
