package server

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
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
	const accepted, refusals = maxHeaders / (maxHeader - 1024 - readAhead), 32
	const clients = accepted + refusals
	for name, dial := range map[string]func(t *testing.T, c testCatalog, o testOptions) (*running, func() net.Conn){
		"plain": func(t *testing.T, c testCatalog, o testOptions) (*running, func() net.Conn) {
			s := start(t, c, o)
			return s, func() net.Conn { return s.dial(t) }
		},
		"TLS": func(t *testing.T, c testCatalog, o testOptions) (*running, func() net.Conn) {
			s, _ := startTLS(t, c, o)
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
			for range refusals - 8 {
				if got := <-refused; got.status != 503 || got.header.Get("Retry-After") == "" || got.body != tooManyHeaders+"\n" || !got.closed {
					t.Fatalf("%+v", got)
				}
			}
			expect.Eventually(t, "the headers to arrive", func() bool { return s.headers.Load() > maxHeaders-maxHeader })
			runtime.GC()
			runtime.ReadMemStats(&after)
			grown := int64(after.HeapAlloc) - int64(before.HeapAlloc)
			t.Logf("%d connections grow the heap by %d MiB", clients, grown>>20)
			if grown > 3*maxHeaders {
				t.Errorf("%d bytes of headers take %d bytes", s.headers.Load(), grown)
			}
			c := dial()
			io.WriteString(c, "GET /db/k HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
			if got := read(t, bufio.NewReader(c), "GET"); got.status != 200 {
				t.Errorf("a short header: %+v", got)
			}
			for _, c := range all {
				c.Close()
			}
			expect.Eventually(t, "the memory to be free", func() bool { return s.headers.Load() == 0 })
			c = dial()
			for range 2 { // each is answered before the next one counts
				io.WriteString(c, "GET /db/k HTTP/1.1\r\nHost: x\r\nX: "+strings.Repeat("x", 30<<10)+"\r\n\r\n")
				if got := read(t, bufio.NewReader(c), "GET"); got.status != 200 {
					t.Errorf("a long header: %+v", got)
				}
				expect.Eventually(t, "its memory to be free", func() bool { return s.headers.Load() == 0 })
			}
		})
	}
}

// The body of a batch is no header, also if it arrives with the next request.
func TestBodiesAreNotHeaders(t *testing.T) {
	s := start(t, catalogOf(t, map[string]string{"k": "value"}), testOptions{})
	s.headers.Add(maxHeaders)
	defer s.headers.Add(-maxHeaders)
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
	expect.NoError(t, err)
	for _, want := range []string{
		fmt.Sprintf("| 431 | header fields of more than %d KiB, or more than %d KiB with the request line |", maxFields>>10, maxHeader>>10),
		fmt.Sprintf("| 414 | a key of more than %d KiB in the path |", blocks.MaxKey>>10),
		fmt.Sprintf("all connections together may have %d MiB beyond %d KiB each", maxHeaders>>20, readAhead>>10),
	} {
		if !strings.Contains(string(page), want) {
			t.Errorf("docs/API.md does not say %q", want)
		}
	}
}
