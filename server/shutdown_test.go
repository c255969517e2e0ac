package server

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"sequins/test/contents"
	"sequins/test/expect"
	"sequins/test/versions"
	"sequins/version"
)

func TestDrain(t *testing.T) {
	s := start(t, catalogOf(t, map[string]string{"a": "one"}), testOptions{})
	if got := s.get(t, "/readyz"); got.status != 200 || got.body != "ready\n" {
		t.Errorf("readyz: %+v", got)
	}
	s.Drain()
	if got := s.get(t, "/readyz"); got.status != 503 || got.body != "draining: this node is shutting down\n" {
		t.Errorf("readyz while draining: %+v", got)
	}
	for target, status := range map[string]int{"/db/a": 200, "/db/none": 404, "/livez": 200, "/": 200, "/db/%": 400} {
		if got := s.get(t, target); got.status != status || !got.closed {
			t.Errorf("%s while draining: %d, closed %v", target, got.status, got.closed)
		}
	}
}

// Shutdown closes idle connections, also those without a request so far, and waits until a client
// has read its value.
func TestShutdownFinishesRequests(t *testing.T) {
	value := noise(1, 16<<20)
	set := version.NewSet("db")
	versions.Activate(t, set, versionOf(t, "db", "v1", 1, map[string]string{"k": value, "a": "one"}))
	s := start(t, &catalog{sets: map[string]*version.Set{"db": set}}, testOptions{})
	_, large := startLarge(t, s, "/db/k")
	idle, fresh := s.dial(t), s.dial(t)
	fmt.Fprint(idle, "GET /db/a HTTP/1.1\r\nHost: x\r\n\r\n")
	idleReader := bufio.NewReader(idle)
	if got := read(t, idleReader, "GET"); got.body != "one" {
		t.Fatalf("%+v", got)
	}

	down := make(chan error, 1)
	go func() { down <- s.Shutdown(context.Background()) }()
	for name, r := range map[string]io.Reader{"idle": idleReader, "fresh": fresh} {
		began := time.Now()
		if n, err := r.Read(make([]byte, 1)); n != 0 || err == nil {
			t.Errorf("the %s connection: %d bytes, %v", name, n, err)
		}
		if d := time.Since(began); d > 10*time.Second {
			t.Errorf("the %s connection was closed after %v", name, d)
		}
	}
	if c, err := net.Dial("tcp", s.addr); err == nil {
		c.Close()
		t.Error("the listener is open")
	}
	select {
	case err := <-down:
		t.Fatalf("Shutdown has not waited: %v", err)
	default:
	}
	body, err := io.ReadAll(large.Body)
	if err != nil || string(body) != value {
		t.Errorf("%d bytes of %d: %v", len(body), len(value), err)
	}
	if err := <-down; err != nil {
		t.Error(err)
	}
}

// At its deadline, Shutdown closes the remaining connections and releases everything.
func TestShutdownGivesUp(t *testing.T) {
	set := version.NewSet("db")
	versions.Activate(t, set, versionOf(t, "db", "v1", 1, map[string]string{"k": noise(1, 16<<20)}))
	s := start(t, &catalog{sets: map[string]*version.Set{"db": set}}, testOptions{})
	_, large := startLarge(t, s, "/db/k")
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	err := s.Shutdown(ctx)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "1 connection") {
		t.Errorf("Shutdown: %v", err)
	}
	if body, err := io.ReadAll(large.Body); err == nil {
		t.Errorf("the client got all of it, %d bytes", len(body))
	}
	closeVersion(t, set.Remove(contents.In("v1")))
}

// However early Shutdown comes, Serve ends, and the listener is closed.
func TestShutdownBeforeServe(t *testing.T) {
	for range 50 {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		expect.NoError(t, err)
		s := newServer(catalogOf(t, nil), testOptions{})
		done := make(chan error, 1)
		go func() { done <- s.Serve(ln) }()
		if err := s.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := ln.Close(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("closing the listener again: %v", err)
		}
	}
}

func TestServeOnAClosedListener(t *testing.T) {
	ln := failing{errors.New("no more files")}
	s := newServer(catalogOf(t, nil), testOptions{})
	if err := s.Serve(ln); !errors.Is(err, ln.err) {
		t.Errorf("Serve: %v", err)
	}
	if err := s.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
}

// failing is a listener that cannot accept.
type failing struct{ err error }

func (f failing) Accept() (net.Conn, error) { return nil, f.err }
func (f failing) Close() error              { return nil }
func (f failing) Addr() net.Addr            { return &net.TCPAddr{} }

// Beyond the limit a connection gets 503, probes are answered, and a flood of
// connections is closed.
func TestMaxConns(t *testing.T) {
	s := start(t, catalogOf(t, map[string]string{"a": "one"}), testOptions{MaxConns: 1})
	c := s.dial(t)
	r := bufio.NewReader(c)
	ask := func() answer {
		fmt.Fprint(c, "GET /db/a HTTP/1.1\r\nHost: x\r\n\r\n")
		return read(t, r, "GET")
	}
	if got := ask(); got.status != 200 {
		t.Fatalf("%+v", got)
	}
	if got := s.get(t, "/db/a"); got.status != 503 || !got.closed || got.header.Get("Retry-After") != "1" {
		t.Errorf("one connection too many: %+v", got)
	}
	for _, probe := range []string{"/livez", "/readyz"} {
		if got := s.get(t, probe); got.status != 200 || !got.closed {
			t.Errorf("%s: %+v", probe, got)
		}
	}
	var flood []net.Conn
	for range 2 * reservedConns {
		flood = append(flood, s.dial(t))
	}
	expect.Eventually(t, "the flood to be bounded", func() bool { return s.state().Refused >= 2*reservedConns })
	if n := s.open.Count(); n > 1+reservedConns {
		t.Errorf("%d connections are open", n)
	}
	if got := ask(); got.status != 200 {
		t.Errorf("the first connection: %+v", got)
	}
	for _, c := range flood {
		c.Close()
	}
	c.Close()
	expect.Eventually(t, "room for a connection", func() bool {
		c, err := net.Dial("tcp", s.addr)
		if err != nil {
			return false
		}
		defer c.Close()
		fmt.Fprint(c, "GET /db/a HTTP/1.1\r\nHost: x\r\n\r\n")
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == 200
	})
	if got := s.logs.String(); !strings.Contains(got, "too many connections") || strings.Count(got, "too many connections") > 20 {
		t.Errorf("logged: %.1000s", got)
	}
}

// A client that does not want the connection any more may say so in any form, and by the version of HTTP.
func TestConnectionClose(t *testing.T) {
	s := start(t, catalogOf(t, map[string]string{"a": "one"}), testOptions{})
	const with = " HTTP/1.1\r\nHost: x\r\nConnection: "
	for header, closed := range map[string]bool{
		with + "close": true, with + "Close": true, with + "CLOSE": true, with + "keep-alive, Close": true, with + "x , close": true,
		with + "keep-alive": false, with + "closed": false, " HTTP/1.0": true, " HTTP/1.0\r\nConnection: keep-alive": false,
	} {
		c := s.dial(t)
		fmt.Fprintf(c, "GET /db/a%s\r\n\r\n", header)
		r := bufio.NewReader(c)
		if got := read(t, r, "GET"); got.status != 200 || got.body != "one" || got.closed != closed {
			t.Errorf("%q: %+v", header, got)
		}
		if closed {
			if _, err := r.ReadByte(); !errors.Is(err, io.EOF) {
				t.Errorf("%q: the connection is open: %v", header, err)
			}
		}
		c.Close()
	}
}

// A client that uses HTTP without TLS gets an error that says so, and such clients do not fill the log.
func TestPlainHTTPToTLS(t *testing.T) {
	s, _ := startTLS(t, catalogOf(t, nil), testOptions{})
	requests := []string{"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "HEAD /db/k HTTP/1.0\r\n\r\n", "POST /"}
	for i := range 300 {
		c := s.dial(t)
		io.WriteString(c, requests[i%len(requests)])
		got := read(t, bufio.NewReader(c), "GET")
		if got.status != 400 || got.body != "this port speaks TLS: use https://\n" || got.header.Get("Content-Type") != plainText || got.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Fatalf("%+v", got)
		}
		c.Close()
	}
	expect.Eventually(t, "all to be counted", func() bool { return s.state().BadHandshakes == 300 })
	if n := strings.Count(s.logs.String(), "without TLS"); n == 0 || n > 100 {
		t.Errorf("%d lines are logged for 300 connections", n)
	}
	c := s.dial(t)
	io.WriteString(c, "\x00\x01\x02\x03\x04\x05")
	if got, err := io.ReadAll(c); err != nil && !errors.Is(err, syscall.ECONNRESET) || len(got) > 0 {
		t.Errorf("what is neither is answered: %q, %v", got, err)
	}
}

// A client that begins a handshake of TLS on a port without TLS is told so at once.
func TestTLSToPlainHTTP(t *testing.T) {
	s := start(t, catalogOf(t, nil), testOptions{})
	began := time.Now()
	for range 3 {
		c, err := tls.Dial("tcp", s.addr, &tls.Config{InsecureSkipVerify: true})
		var first tls.RecordHeaderError
		if !errors.As(err, &first) || string(first.RecordHeader[:]) != "HTTP/" {
			t.Errorf("%v, %v", c, err)
		}
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("that took %v", took)
	}
	expect.Eventually(t, "all to be counted", func() bool { return s.state().BadHandshakes == 3 })
	if !strings.Contains(s.logs.String(), "the client speaks TLS, and this port does not") {
		t.Errorf("logged: %s", s.logs)
	}
}

// Handshakes that fail are counted and logged; clients that hang up are not.
func TestFailedHandshakes(t *testing.T) {
	cert := httptest.NewTLSServer(nil)
	defer cert.Close()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	s := startOn(t, tls.NewListener(ln, &tls.Config{Certificates: cert.TLS.Certificates, ClientAuth: tls.RequireAnyClientCert}), catalogOf(t, nil), testOptions{})
	s.dial(t).Close()
	c := tls.Client(s.dial(t), &tls.Config{InsecureSkipVerify: true})
	if _, err := io.ReadAll(c); err == nil {
		t.Error("a client without a certificate gets an answer")
	}
	expect.Eventually(t, "the handshake to be counted", func() bool { return s.state().BadHandshakes == 1 })
	expect.Eventually(t, "it is logged, with the client", func() bool { // a moment later
		got := s.logs.String()
		return strings.Contains(got, "didn't provide a certificate") && strings.Contains(got, "client=127.0.0.1:")
	})
}
