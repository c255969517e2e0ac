package server

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"sequins/observe/metrics"
	"sequins/test/expect"
)

// startTLS serves over TLS, and returns a client that would prefer HTTP/2.
func startTLS(t *testing.T, c testCatalog, o testOptions) (*running, *http.Client) {
	t.Helper()
	other := httptest.NewTLSServer(nil) // has a certificate, and a client that trusts it
	other.Close()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	s := startOn(t, tls.NewListener(ln, &tls.Config{Certificates: other.TLS.Certificates}), c, o)
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
	expect.NoError(t, err)
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

// Clients over TLS get the same answers as others, in HTTP/1.1.
func TestTLS(t *testing.T) {
	large := noise(1, 300<<10)
	m := metrics.New()
	s, client := startTLS(t, catalogOf(t, map[string]string{"a": "one", "large": large}), testOptions{Metrics: m.Server})
	for _, test := range []struct {
		target, header string
		status         int
		body           string
	}{
		{"/db/a", "X: y", 200, "one"}, {"/db/large", "X: y", 200, large}, {"/db/absent", "X: y", 404, "no such key\n"},
		{"/db/large", "Range: bytes=70000-70009", 206, large[70000:70010]}, {"/db/a", "If-None-Match: " + etagOf("one"), 304, ""}, {"/livez", "X: y", 200, "ok\n"},
	} {
		resp, body := ask(t, client, "https://"+s.addr+test.target, test.header)
		if resp.StatusCode != test.status || body != test.body || resp.ProtoMajor != 1 {
			t.Errorf("%s, %s: %s %s, %d bytes", test.target, test.header, resp.Proto, resp.Status, len(body))
		}
	}
	if n := s.open.Count(); n != 1 {
		t.Errorf("%d connections are open", n)
	}
	client.CloseIdleConnections()
	expect.Eventually(t, "the connection to be forgotten", func() bool { return s.open.Count() == 0 })
	if n := answered(m)["200"]; n != 2 { // for keys
		t.Errorf("%d requests are counted", n)
	}
}
