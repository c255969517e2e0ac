package server

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"sequins/metrics"
)

// plainClient asks for the same thing again and again on one connection, and
// allocates nothing.
type plainClient struct {
	net.Conn
	request, buf []byte
	length       int // of a whole response
}

// newClient asks once, to learn how long the response is.
func newClient(t testing.TB, addr, target string) *plainClient {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	p := &plainClient{Conn: c, buf: make([]byte, 1<<20)}
	p.request = fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: localhost:9599\r\nUser-Agent: test\r\nAccept: */*\r\n%s\r\n\r\n", target, webToken)
	if _, err := c.Write(p.request); err != nil {
		t.Fatal(err)
	}
	for {
		n, err := c.Read(p.buf[p.length:])
		if err != nil {
			t.Fatal(err)
		}
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

// newHandlerContext is a request for the handler alone.
func newHandlerContext(target string) *fasthttp.RequestCtx {
	var ctx fasthttp.RequestCtx
	ctx.Init(&fasthttp.Request{}, nil, nil)
	ctx.Request.Header.SetRequestURI(target)
	return &ctx
}

// Neither a hit nor a miss allocates anything: the handler nothing at all, plain
// requests neither, and fasthttp around the others no more than the byte that it
// reads a request's first one into.
func TestGetDoesNotAllocate(t *testing.T) {
	records := map[string]string{"small": strings.Repeat("x", 100), "page": strings.Repeat("x", 60<<10), "a/b c": "escaped"}
	tokens, _ := openTokens(t, tokensFile)
	for name, o := range map[string]Options{"open": {}, "with tokens": {Tokens: tokens}} {
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
	for _, target := range []string{"/db/small", "/db/page", "/db/a%2Fb%20c", "/db/absent", "/none/key", "/db/%", "/db/small?proxy=true", "/db/small?proxy=v1"} {
		ctx := newHandlerContext(target)
		ctx.Request.Header.Set("Authorization", strings.TrimPrefix(webToken, "Authorization: "))
		handler := testing.AllocsPerRun(runs, func() {
			s.handle(ctx)
			ctx.Response.Reset()
		})
		c := newClient(t, s.addr, target)
		whole := testing.AllocsPerRun(runs, func() { c.ask(t) })
		most := 1.
		if strings.HasPrefix(target, "/db/") && target != "/db/page" && target != "/db/%" {
			most = 0
		}
		if !raceEnabled && (handler != 0 || whole > most) {
			t.Errorf("GET %s: %v allocations in the handler, %v in all", target, handler, whole)
		}
	}
}

// constant is fasthttp itself, with a body that is always the same: what a GET
// costs at least.
func constant(b *testing.B, body []byte) string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	s := &fasthttp.Server{Handler: func(ctx *fasthttp.RequestCtx) { ctx.Response.SetBody(body) }, NoDefaultServerHeader: true}
	done := make(chan error, 1)
	go func() { done <- s.Serve(ln) }()
	b.Cleanup(func() {
		if err := s.Shutdown(); err != nil {
			b.Error(err)
		}
		if err := <-done; err != nil {
			b.Error(err)
		}
	})
	return ln.Addr().String()
}

// A request and its answer over loopback, the client's share included.
func BenchmarkGet(b *testing.B) {
	records := map[string]string{}
	for i := range 10000 {
		records[fmt.Sprintf("user:%06d", i)] = strings.Repeat("x", 100)
	}
	records["10000"] = strings.Repeat("x", 10000)
	records["large"] = noise(1, 900<<10)
	s := start(b, catalogOf(b, records), Options{Metrics: metrics.New().Server})
	tokens, _ := openTokens(b, tokensFile)
	guarded := start(b, catalogOf(b, records), Options{Metrics: metrics.New().Server, Tokens: tokens})
	for _, test := range []struct{ name, addr, target string }{
		{"constant/100", constant(b, []byte(records["user:000000"])), "/db/user:005000"},
		{"sequins/100", s.addr, "/db/user:005000"},
		{"sequins/100 with a token", guarded.addr, "/db/user:005000"},
		{"constant/10000", constant(b, []byte(records["10000"])), "/db/10000"},
		{"sequins/10000", s.addr, "/db/10000"},
		{"constant/900K", constant(b, []byte(records["large"])), "/db/large"},
		{"sequins/900K", s.addr, "/db/large"},
		{"absent", s.addr, "/db/absent"},
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

// The handler alone: what sequins adds to fasthttp.
func BenchmarkHandler(b *testing.B) {
	c := catalogOf(b, map[string]string{"user:005000": strings.Repeat("x", 100)})
	open := New(c, Options{Metrics: metrics.New().Server})
	tokens, _ := openTokens(b, tokensFile)
	guarded := New(c, Options{Metrics: metrics.New().Server, Tokens: tokens})
	for _, test := range []struct {
		name   string
		s      *Server
		target string
	}{
		{"hit", open, "/db/user:005000"}, {"escaped", open, "/db/user%3A005000"}, {"absent", open, "/db/absent"},
		{"hit with a token", guarded, "/db/user:005000"}, {"absent with a token", guarded, "/db/absent"},
	} {
		b.Run(test.name, func(b *testing.B) {
			ctx := newHandlerContext(test.target)
			ctx.Request.Header.Set("Authorization", strings.TrimPrefix(webToken, "Authorization: "))
			b.ReportAllocs()
			for b.Loop() {
				test.s.handle(ctx)
				ctx.Response.Reset()
			}
		})
	}
}
