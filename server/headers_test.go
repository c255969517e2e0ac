package server

import (
	"bufio"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"sequins/blocks"
	"sequins/test/expect"
)

// unfinished is a request whose header is almost as long as it may be, without its end.
var unfinished = "GET /db/" + strings.Repeat("k", maxHeader-1024)

// However many connections send long headers, they take a bounded memory; plain requests are answered meanwhile, and long ones afterwards.
func TestHeadersOfAllConnections(t *testing.T) {
	const clients = 2 * maxHeaders / (maxHeader - 1024 - readAhead)
	for name, dial := range map[string]func(t *testing.T, c testCatalog, o testOptions) (*running, func() net.Conn){
		"plain": func(t *testing.T, c testCatalog, o testOptions) (*running, func() net.Conn) {
			s := start(t, c, o)
			return s, func() net.Conn { return s.dial(t) }
		},
		"TLS": func(t *testing.T, c testCatalog, o testOptions) (*running, func() net.Conn) {
			s, _ := startTLS(t, c, o, "h2", "http/1.1")
			return s, func() net.Conn { return tls.Client(s.dial(t), &tls.Config{InsecureSkipVerify: true}) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, dial := dial(t, catalogOf(t, map[string]string{"k": "value"}), testOptions{Timeouts: Timeouts{Read: patience}})
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			refused := make(chan answer, clients)
			all := make([]net.Conn, clients)
			for i := range all {
				c := dial()
				all[i] = c
				go func() {
					if _, err := io.WriteString(c, unfinished); err != nil {
						return
					}
					resp, err := http.ReadResponse(bufio.NewReader(c), nil)
					if err != nil {
						return
					}
					body, _ := io.ReadAll(resp.Body)
					refused <- answer{status: resp.StatusCode, header: resp.Header, body: string(body), closed: resp.Close}
				}()
			}
			for range clients/2 - 8 {
				if got := <-refused; got.status != 503 || got.header.Get("Retry-After") == "" || got.body != tooManyHeaders+"\n" || !got.closed {
					t.Fatalf("%+v", got)
				}
			}
			expect.Eventually(t, "the headers to arrive", func() bool { return s.headers.used.Load() > maxHeaders-maxHeader })
			runtime.GC()
			runtime.ReadMemStats(&after)
			grown := int64(after.HeapAlloc) - int64(before.HeapAlloc)
			t.Logf("%d connections grow the heap by %d MiB", clients, grown>>20)
			if grown > 3*maxHeaders {
				t.Errorf("%d bytes of headers take %d bytes", s.headers.used.Load(), grown)
			}
			c := dial()
			io.WriteString(c, "GET /db/k HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
			if got := read(t, bufio.NewReader(c), "GET"); got.status != 200 {
				t.Errorf("a short header: %+v", got)
			}
			for _, c := range all {
				c.Close()
			}
			expect.Eventually(t, "the memory to be free", func() bool { return s.headers.used.Load() == 0 })
			c = dial()
			for range 2 { // each is answered before the next one counts
				io.WriteString(c, "GET /db/k HTTP/1.1\r\nHost: x\r\nX: "+strings.Repeat("x", 30<<10)+"\r\n\r\n")
				if got := read(t, bufio.NewReader(c), "GET"); got.status != 200 {
					t.Errorf("a long header: %+v", got)
				}
				expect.Eventually(t, "its memory to be free", func() bool { return s.headers.used.Load() == 0 })
			}
		})
	}
}

// The body of a batch is no header, also if it arrives with the next request.
func TestBodiesAreNotHeaders(t *testing.T) {
	s := start(t, catalogOf(t, map[string]string{"k": "value"}), testOptions{})
	if !s.headers.take(maxHeaders) {
		t.Fatal("the memory is not free")
	}
	defer s.headers.give(maxHeaders)
	body := `{"keys":["` + strings.Repeat("k", 60<<10) + `"]}`
	one := "POST /db HTTP/1.1\r\nHost: x\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body
	c := s.dial(t)
	go io.WriteString(c, one+one+one)
	r := bufio.NewReader(c)
	for range 3 {
		if got := read(t, r, "POST"); got.status != 200 {
			t.Errorf("%+v", got)
		}
	}
}

// Long headers of streams count, too.
func TestHeadersOfStreams(t *testing.T) {
	s, client := startTLS(t, catalogOf(t, map[string]string{"k": "value"}), testOptions{}, "h2")
	url := "https://" + s.addr + "/db/k"
	long := "X: " + strings.Repeat("x", 8<<10)
	if got, _ := ask(t, client, url, long); got.StatusCode != 200 || got.ProtoMajor != 2 {
		t.Errorf("%+v", got)
	}
	expect.Eventually(t, "the memory to be free", func() bool { return s.headers.used.Load() == 0 })
	if !s.headers.take(maxHeaders) {
		t.Fatal("the memory is not free")
	}
	defer s.headers.give(maxHeaders)
	if got, _ := ask(t, client, url); got.StatusCode != 200 {
		t.Errorf("a short header: %+v", got)
	}
	req, _ := http.NewRequest("GET", url, nil)
	req.Header.Set("X", strings.Repeat("x", 8<<10))
	if got, err := client.Do(req); err == nil {
		t.Errorf("a long header: %+v", got)
		got.Body.Close()
	}
}

// Beyond the limit of HTTP/2 connections, clients get HTTP/1.1.
func TestHTTP2ConnectionsAreLimited(t *testing.T) {
	other := httptest.NewTLSServer(nil)
	other.Close()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	later := new(lateListener)
	later.Listener = ln
	later.set = make(chan *tls.Config, 1)
	s := startOn(t, later, catalogOf(t, map[string]string{"k": "value"}), testOptions{})
	later.set <- s.LimitHTTP2(&tls.Config{Certificates: other.TLS.Certificates, NextProtos: []string{"h2", "http/1.1"}})
	transport := other.Client().Transport.(*http.Transport).Clone()
	transport.ForceAttemptHTTP2 = true
	client := &http.Client{Transport: transport, Timeout: patience}
	url := "https://" + s.addr + "/db/k"
	if got, body := ask(t, client, url); got.ProtoMajor != 2 || body != "value" || s.http2.Load() != 1 {
		t.Errorf("%+v", got)
	}
	client.CloseIdleConnections()
	expect.Eventually(t, "the connection to end", func() bool { return s.http2.Load() == 0 })
	s.http2.Add(maxHTTP2)
	defer s.http2.Add(-maxHTTP2)
	if got, body := ask(t, client, url); got.ProtoMajor != 1 || body != "value" {
		t.Errorf("%+v", got)
	}
	client.CloseIdleConnections()
	// A handshake that began before the limit was reached.
	s.http2.Add(-1)
	c := tls.Client(s.dial(t), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	done := make(chan struct{})
	c2 := tls.Client(s.dial(t), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}, VerifyConnection: func(tls.ConnectionState) error {
		<-done // the server has offered HTTP/2 by now
		return nil
	}})
	go c2.Handshake()
	if err := c.Handshake(); err != nil {
		t.Fatal(err)
	}
	expect.Eventually(t, "the connection to be taken over", func() bool { return s.http2.Load() == maxHTTP2 })
	close(done)
	if _, err := io.ReadAll(c2); err != nil && !strings.Contains(err.Error(), "EOF") && !strings.Contains(err.Error(), "reset") {
		t.Errorf("one too many: %v", err)
	}
	c.Close()
	expect.Eventually(t, "both connections to be forgotten", func() bool { return s.http2.Load() == maxHTTP2-1 })
	s.http2.Add(1)
}

// lateListener is a listener of TLS whose configuration is set when the server exists.
type lateListener struct {
	net.Listener
	set    chan *tls.Config
	config *tls.Config
}

func (l *lateListener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if l.config == nil {
		l.config = <-l.set
	}
	return tls.Server(nc, l.config), nil
}

// A frame that is longer than the least limit of the protocol is refused when it is announced.
func TestFramesAreSmall(t *testing.T) {
	s, _ := startTLS(t, catalogOf(t, map[string]string{"k": "value"}), testOptions{}, "h2")
	c := tls.Client(s.dial(t), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	const settings, headers, goAway = 4, 1, 7
	frame := func(length uint32, kind byte, stream uint32) []byte {
		b := binary.BigEndian.AppendUint32(nil, length<<8|uint32(kind))
		return binary.BigEndian.AppendUint32(append(b, 0), stream)
	}
	c.Write(append(append([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), frame(0, settings, 0)...), frame(minReadFrame+1, headers, 1)...))
	r := bufio.NewReader(c)
	for {
		var head [9]byte
		if _, err := io.ReadFull(r, head[:]); err != nil {
			t.Fatalf("no GOAWAY: %v", err)
		}
		body := make([]byte, binary.BigEndian.Uint32(head[:4])>>8)
		if _, err := io.ReadFull(r, body); err != nil {
			t.Fatal(err)
		}
		if head[3] == goAway {
			const frameSizeError = 6
			if code := binary.BigEndian.Uint32(body[4:8]); code != frameSizeError {
				t.Errorf("code %d", code)
			}
			return
		}
	}
}

// The documents name the limits of requests, and the limits are these.
func TestLimitsOfTheManual(t *testing.T) {
	s := start(t, catalogOf(t, map[string]string{"k": "value"}), testOptions{})
	line, field := len("GET /db/k?x= HTTP/1.1\r\n"), len("X: \r\n")
	for _, test := range []struct {
		query, field int // bytes
		want         int
	}{
		{0, maxFields - len("Host: x\r\n") - field - 100, 200}, {0, maxFields, 431},
		{maxHeader - line - 1000, 0, 200}, {maxHeader + 5<<10, 0, 431}, // net/http reads 4 KiB more than its limit
	} {
		got := s.raw(t, "GET", "GET /db/k?x="+strings.Repeat("x", test.query)+" HTTP/1.1\r\nHost: x\r\nX: "+strings.Repeat("x", test.field)+"\r\n\r\n")
		if got.status != test.want {
			t.Errorf("a query of %d and a field of %d bytes: %d %s, want %d", test.query, test.field, got.status, got.body, test.want)
		}
	}
	page, err := os.ReadFile("../docs/API.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		fmt.Sprintf("| 431 | header fields of more than %d KiB, or more than %d KiB with the request line |", maxFields>>10, maxHeader>>10),
		fmt.Sprintf("| 414 | a key of more than %d KiB in the path |", blocks.MaxKey>>10),
		fmt.Sprintf("all connections together may have %d MiB beyond %d KiB each", maxHeaders>>20, readAhead>>10),
		fmt.Sprintf("At most %d,%03d connections use HTTP/2", maxHTTP2/1000, maxHTTP2%1000),
	} {
		if !strings.Contains(string(page), want) {
			t.Errorf("docs/API.md does not say %q", want)
		}
	}
}
