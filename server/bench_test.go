package server

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"sequins/observe/metrics"
	"sequins/test/expect"
)

// plainClient asks for the same thing again and again on one connection, and
// allocates nothing.
type plainClient struct {
	net.Conn
	request, buf []byte
	length       int // of a whole response
}

// newClient asks once, to learn how long the response is.
func newClient(t testing.TB, addr, target string, headers ...string) *plainClient {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	expect.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	p := &plainClient{Conn: c, buf: make([]byte, 1<<20)}
	p.request = fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: localhost:9599\r\nUser-Agent: test\r\nAccept: */*\r\n%s\r\n\r\n", target, strings.Join(append(headers, webToken), "\r\n"))
	if _, err := c.Write(p.request); err != nil {
		t.Fatal(err)
	}
	for {
		n, err := c.Read(p.buf[p.length:])
		expect.NoError(t, err)
		p.length += n
		head, body, ok := bytes.Cut(p.buf[:p.length], []byte("\r\n\r\n"))
		if !ok {
			continue
		}
		var length int
		_, rest, _ := strings.Cut(string(head), "Content-Length: ")
		if _, err := fmt.Sscan(rest, &length); err != nil {
			t.Fatalf("no Content-Length in %s", head)
		}
		if len(body) == length {
			return p
		}
	}
}

func (p *plainClient) ask(t testing.TB) {
	if _, err := p.Write(p.request); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(p.Conn, p.buf[:p.length]); err != nil {
		t.Fatal(err)
	}
}

// No plain request allocates anything, whatever its answer is.
func TestGetDoesNotAllocate(t *testing.T) {
	records := map[string]string{"small": strings.Repeat("x", 100), "page": strings.Repeat("x", 60<<10), "large": noise(1, 100<<10), "a/b c": "escaped"}
	tokens, _ := openTokens(t, tokensFile)
	for name, o := range map[string]testOptions{"open": {}, "with tokens": {Tokens: tokens}} {
		t.Run(name, func(t *testing.T) {
			o.Metrics = metrics.New().Server
			testAllocations(t, start(t, catalogOf(t, records), o))
		})
	}
}

func testAllocations(t *testing.T, s *running) {
	runs := 1000
	if raceEnabled {
		runs = 10 // only to see that it runs
	}
	for _, target := range []string{"/db/small", "/db/page", "/db/large", "/db/a%2Fb%20c", "/db/absent", "/none/key", "/db/small?proxy=true", "/db/small?proxy=v1", "/db/small?proxy=v2"} {
		c := newClient(t, s.addr, target)
		most := 0.
		if target == "/db/large" {
			most = 4 // what a Section is made of
		}
		if n := testing.AllocsPerRun(runs, func() { c.ask(t) }); n > most && !raceEnabled {
			t.Errorf("GET %s: %v allocations", target, n)
		}
	}
}

// A request and its answer over loopback, the client's share included.
func BenchmarkGet(b *testing.B) {
	records := map[string]string{}
	for i := range 10000 {
		records[fmt.Sprintf("user:%06d", i)] = strings.Repeat("x", 100)
	}
	records["10000"] = strings.Repeat("x", 10000)
	records["large"] = noise(1, 900<<10)
	s := start(b, catalogOf(b, records), testOptions{Metrics: metrics.New().Server})
	tokens, _ := openTokens(b, tokensFile)
	guarded := start(b, catalogOf(b, records), testOptions{Metrics: metrics.New().Server, Tokens: tokens})
	for _, test := range []struct{ name, addr, target string }{
		{"sequins/100", s.addr, "/db/user:005000"},
		{"sequins/100 with a token", guarded.addr, "/db/user:005000"},
		{"sequins/10000", s.addr, "/db/10000"},
		{"sequins/900K", s.addr, "/db/large"},
		{"absent", s.addr, "/db/absent"},
		{"general/100", s.addr, "/db/user:005000?general"},
		{"general/900K", s.addr, "/db/large?general"},
	} {
		b.Run(test.name, func(b *testing.B) {
			c := newClient(b, test.addr, test.target)
			b.ReportAllocs()
			for b.Loop() {
				c.ask(b)
			}
		})
	}
}
