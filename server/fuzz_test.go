package server

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sequins/test/expect"
)

// FuzzConnection sends any bytes to a server, and wants HTTP back: nothing, or
// responses with a length and a status that the table of errors has.
func FuzzConnection(f *testing.F) {
	for _, s := range []string{
		"GET /db/a HTTP/1.1\r\nHost: x\r\n\r\n",
		"HEAD /db/large HTTP/1.1\r\nHost: x\r\n\r\nGET /db/large HTTP/1.1\r\nHost: x\r\nRange: bytes=70000-\r\n\r\n",
		"POST /db/a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
		"GET A://# HTTP/1.0\r\n\r\n",
		"GET //..%2f?proxy=v1 HTTP/1.0\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: x\r\nAccept: text/html\r\nIf-None-Match: *\r\nConnection: close\r\n\r\n",
		"GET /db/large HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip, zstd;q=0.5\r\n\r\nGET /db/absent HTTP/1.1\r\nHost: x\r\nOrigin: http://x\r\nAccept: application/json\r\n\r\n",
		"OPTIONS /db HTTP/1.1\r\nHost: x\r\nOrigin: http://x\r\nAccess-Control-Request-Method: POST\r\n\r\n",
		"POST /db HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\nContent-Length: 1\r\n\r\nx",
		"GET http://h/healthz HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n",
	} {
		f.Add([]byte(s))
	}
	l := new(expect.Output)
	c := catalogOf(f, map[string]string{"a": "one", "large": noise(1, 100<<10)})
	web := Delivery{Origins: []string{"http://x"}, Codings: []string{"zstd", "gzip"}, Caching: "max-age=1"}
	s := newServer(c, testOptions{Logger: slog.New(slog.NewTextHandler(l, nil)), Delivery: web})
	serving(f, s)
	f.Fuzz(func(t *testing.T, data []byte) {
		client := record(string(data))
		client.serve(s, false)
		checkResponses(t, &client.out, data)
		if strings.Contains(l.String(), "panic") {
			t.Fatalf("%q: %s", data, l)
		}
	})
}

// recording is a connection to a client that sends all it has, then hangs up,
// and reads everything.
type recording struct {
	net.Conn
	in     *strings.Reader
	out    bytes.Buffer
	once   sync.Once
	closed chan struct{}
}

func record(in string) *recording {
	return &recording{in: strings.NewReader(in), closed: make(chan struct{})}
}

func (c *recording) Read(p []byte) (int, error)       { return c.in.Read(p) }
func (c *recording) Write(p []byte) (int, error)      { return c.out.Write(p) }
func (c *recording) Close() error                     { c.once.Do(func() { close(c.closed) }); return nil }
func (c *recording) SetDeadline(time.Time) error      { return nil }
func (c *recording) SetReadDeadline(time.Time) error  { return nil }
func (c *recording) SetWriteDeadline(time.Time) error { return nil }
func (c *recording) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (c *recording) RemoteAddr() net.Addr             { return &net.TCPAddr{} }

// serve has a server answer the client until the end, all of it by net/http if general is true.
func (c *recording) serve(s *Server, general bool) {
	conn := newConn(c, s)
	s.open.Go(&conn.Base, func() {
		if general {
			s.handOver(conn)
		} else {
			conn.serve()
		}
	})
	<-c.closed
}

// serving makes a server take over the connections of serve, until the end of the test.
func serving(t testing.TB, s *Server) {
	t.Helper()
	ln := &pipes{make(chan net.Conn), make(chan struct{})}
	done := make(chan error, 1)
	go func() { done <- s.Serve(ln) }()
	t.Cleanup(func() {
		if err := s.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// checkResponses reads responses to the end.
func checkResponses(t *testing.T, c io.Reader, data []byte) {
	r := bufio.NewReader(c)
	for {
		if _, err := r.Peek(1); err != nil {
			return
		}
		// The request that this answers is not known, so neither is whether it was HEAD.
		resp, err := http.ReadResponse(r, &http.Request{Method: "HEAD"})
		if err != nil {
			t.Fatalf("%q: %v", data, err)
		}
		switch resp.StatusCode {
		case 200, 204, 206, 304, 400, 404, 405, 412, 413, 414, 415, 416, 417, 431, 501, 503, 505, 100:
		default:
			t.Fatalf("%q: %s", data, resp.Status)
		}
		if !skipBody(r, resp) {
			return
		}
	}
}

// skipBody reads a body if one follows: another response would begin with HTTP.
func skipBody(r *bufio.Reader, resp *http.Response) bool {
	if resp.Close && resp.ContentLength < 0 { // net/http's own errors
		return false
	}
	next, err := r.Peek(5)
	if slices.Equal(resp.TransferEncoding, []string{"chunked"}) && string(next) != "HTTP/" {
		if _, err := io.Copy(io.Discard, httputil.NewChunkedReader(r)); err != nil {
			return false
		}
		_, err := r.Discard(len("\r\n")) // the empty trailer
		return err == nil
	}
	if resp.ContentLength <= 0 || (err == nil && string(next) == "HTTP/") {
		return true
	}
	_, err = io.CopyN(io.Discard, r, resp.ContentLength)
	return err == nil || !errors.Is(err, io.EOF)
}
