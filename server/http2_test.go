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
	"time"

	"sequins/observe/metrics"
	"sequins/test/contents"
	"sequins/test/expect"
	"sequins/version"
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
		if n := s.open.Count(); n != 1 {
			t.Errorf("%v: %d connections are open", protocols, n)
		}
		client.CloseIdleConnections()
		expect.Eventually(t, "the connection to be forgotten", func() bool { return s.open.Count() == 0 })
		if n := answered(m)["200"]; n != 2 { // for keys
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
	expect.Eventually(t, "the first connection", func() bool { return s.open.Count() == 1 })
	for target, want := range map[string]int{"/db/a": 503, "/livez": 200} {
		if resp, body := ask(t, client, fmt.Sprintf("https://%s%s", s.addr, target)); resp.StatusCode != want || resp.ProtoMajor != 2 {
			t.Errorf("%s: %s %s %q", target, resp.Proto, resp.Status, body)
		}
	}
	client.CloseIdleConnections()
	expect.Eventually(t, "room", func() bool { return s.open.Count() <= 1 })
}

// narrow makes a client take no more of a value than it reads, and returns a server of one that has more.
func narrow(t *testing.T, size int, write time.Duration) (s *running, client *http.Client, set *version.Set, m *metrics.Metrics) {
	t.Helper()
	set = version.NewSet("db")
	activate(t, set, versionOf(t, "db", "v1", 1, map[string]string{"k": noise(1, size)}))
	m = metrics.New()
	s, client = startTLS(t, &catalog{sets: map[string]*version.Set{"db": set}}, testOptions{Metrics: m.Server, Timeouts: Timeouts{Write: write}}, "h2")
	client.Transport.(*http.Transport).HTTP2 = &http.HTTP2Config{MaxReceiveBufferPerStream: 64 << 10, MaxReceiveBufferPerConnection: 1 << 20}
	return s, client, set, m
}

// A client that keeps the window of its stream closed is cut off, and the version it reads from is released;
// other streams of its connection are answered.
func TestHTTP2ClosedWindow(t *testing.T) {
	s, client, set, m := narrow(t, 8<<20, 200*time.Millisecond)
	resp, err := client.Get("https://" + s.addr + "/db/k")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	expect.Eventually(t, "the request to end", func() bool { return answered(m)["499"] == 1 })
	closeVersion(t, set.Remove(contents.In("v1")))
	if other, _ := ask(t, client, "https://"+s.addr+"/livez"); other.StatusCode != 200 || s.open.Count() != 1 {
		t.Errorf("on the same connection: %s, %d connections", other.Status, s.open.Count())
	}
	if n, err := io.Copy(io.Discard, resp.Body); err == nil || n >= 8<<20 {
		t.Errorf("%d bytes, %v", n, err)
	}
}

// A client that reads slowly, but steadily, may take longer for a value than for a chunk of it.
func TestHTTP2SlowClient(t *testing.T) {
	const write, size = 3 * time.Second, 4 << 20
	s, client, _, _ := narrow(t, size, write)
	resp, err := client.Get("https://" + s.addr + "/db/k")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	began, pace := time.Now(), time.NewTicker(write*5/4/(size/(64<<10)))
	defer pace.Stop()
	read := 0
	for buf := make([]byte, 64<<10); ; <-pace.C {
		n, err := io.ReadFull(resp.Body, buf)
		if read += n; err == io.EOF || err == io.ErrUnexpectedEOF && read == size {
			break
		}
		if err != nil {
			t.Fatalf("after %d bytes and %s: %v", read, time.Since(began), err)
		}
	}
	if took := time.Since(began); read != size || took < write {
		t.Errorf("%d bytes in %s", read, took)
	}
}
