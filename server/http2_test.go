package server

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"sequins/metrics"
)

// startTLS serves over TLS, and returns a client that negotiates HTTP/2 if the server offers it.
func startTLS(t *testing.T, c testCatalog, o testOptions, protocols ...string) (*running, *http.Client) {
	t.Helper()
	other := httptest.NewTLSServer(nil) // has a certificate, and a client that trusts it
	other.Close()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := startOn(t, tls.NewListener(ln, &tls.Config{Certificates: other.TLS.Certificates, NextProtos: protocols}), c, o)
	transport := other.Client().Transport.(*http.Transport).Clone()
	transport.ForceAttemptHTTP2 = true
	client := &http.Client{Transport: transport, Timeout: patience}
	t.Cleanup(client.CloseIdleConnections) // before the server, which waits for nobody then
	return s, client
}

// ask returns a response with its body.
func ask(t *testing.T, client *http.Client, url string, headers ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequest("GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatalf("%s: %v", url, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s: %v", url, err)
	}
	return resp, string(body)
}

// A client that agrees on HTTP/2 gets the same answers as others; one that is not offered it, or does not
// want it, speaks HTTP/1.1.
func TestHTTP2(t *testing.T) {
	large := noise(1, 300<<10)
	records := map[string]string{"a": "one", "large": large}
	for _, protocols := range [][]string{{"h2", "http/1.1"}, {"http/1.1"}, nil} {
		m := metrics.New()
		s, client := startTLS(t, catalogOf(t, records), testOptions{Metrics: m.Server}, protocols...)
		want := 1
		if len(protocols) == 2 {
			want = 2
		}
		for _, test := range []struct {
			target, header string
			status         int
			body           string
		}{
			{"/db/a", "X: y", 200, "one"}, {"/db/large", "X: y", 200, large}, {"/db/absent", "X: y", 404, "no such key\n"},
			{"/db/large", "Range: bytes=70000-70009", 206, large[70000:70010]}, {"/db/a", "If-None-Match: " + etagOf("one"), 304, ""}, {"/livez", "X: y", 200, "ok\n"},
		} {
			resp, body := ask(t, client, "https://"+s.addr+test.target, test.header)
			if resp.StatusCode != test.status || body != test.body || resp.ProtoMajor != want {
				t.Errorf("%v: %s, %s: %s %s, %d bytes", protocols, test.target, test.header, resp.Proto, resp.Status, len(body))
			}
		}
		if n := s.open.count(); n != 1 {
			t.Errorf("%v: %d connections are open", protocols, n)
		}
		client.CloseIdleConnections()
		eventually(t, "the connection to be forgotten", func() bool { return s.open.count() == 0 })
		if n := m.Server.Vars().Requests["200"]; n != 2 { // for keys
			t.Errorf("%v: %d requests are counted", protocols, n)
		}
	}
}

// Requests of one HTTP/2 connection are answered at a time, and shutdown waits for them.
func TestHTTP2Shutdown(t *testing.T) {
	large := noise(1, 8<<20)
	s, client := startTLS(t, catalogOf(t, map[string]string{"large": large}), testOptions{}, "h2")
	var all sync.WaitGroup
	begun := make(chan struct{}, 4)
	for range cap(begun) {
		all.Go(func() {
			resp, err := client.Get("https://" + s.addr + "/db/large")
			if err != nil {
				t.Error(err)
				begun <- struct{}{}
				return
			}
			defer resp.Body.Close()
			begun <- struct{}{}
			if body, err := io.ReadAll(resp.Body); err != nil || string(body) != large {
				t.Errorf("%d bytes, %v", len(body), err)
			}
		})
	}
	for range cap(begun) {
		<-begun
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	all.Wait()
}

// Beyond the limit of connections HTTP/2 is refused as others are.
func TestHTTP2MaxConns(t *testing.T) {
	s, client := startTLS(t, catalogOf(t, map[string]string{"a": "one"}), testOptions{MaxConns: 1}, "h2")
	s.dial(t)
	eventually(t, "the first connection", func() bool { return s.open.count() == 1 })
	for target, want := range map[string]int{"/db/a": 503, "/livez": 200} {
		if resp, body := ask(t, client, fmt.Sprintf("https://%s%s", s.addr, target)); resp.StatusCode != want || resp.ProtoMajor != 2 {
			t.Errorf("%s: %s %s %q", target, resp.Proto, resp.Status, body)
		}
	}
	client.CloseIdleConnections()
	eventually(t, "room", func() bool { return s.open.count() <= 1 })
}
