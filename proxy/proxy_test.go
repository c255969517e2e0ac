package proxy

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sequins/test/expect"
)

// What a peer is asked, to the byte.
func TestRequest(t *testing.T) {
	var raw string
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	defer ln.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		c, err := ln.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		b := make([]byte, 1<<10)
		n, _ := c.Read(b)
		raw = string(b[:n])
		io.WriteString(c, answer(200, "x"))
		c.Read(b)
	}()
	c := client(t, Options{Timeout: ample})
	q := &Query{Peers: []string{ln.Addr().String()}, Path: []byte("/db/a//../%2F+#\xff%"), Version: "v 1&é+=,@:",
		Fields: []Field{{"Range", []byte("bytes=0-1")}, {"Traceparent", []byte("00-1")}}}
	if _, err := c.Fetch(context.Background(), q); err == nil || !strings.Contains(err.Error(), `from version "v1"`) {
		t.Errorf("an answer from another version: %v", err)
	}
	c.Close()
	<-done
	want := "GET /db/a//../%2F+#\xff%?proxy=v%201%26%C3%A9%2B=,@: HTTP/1.1\r\nRange: bytes=0-1\r\nTraceparent: 00-1\r\nHost: " + ln.Addr().String() + "\r\n\r\n"
	if diff := cmp.Diff(want, raw); diff != "" {
		t.Errorf("the request (-want +got):\n%s", diff)
	}
}

// Answers that can be used, over real connections, which are used again.
func TestAnswers(t *testing.T) {
	large, medium := strings.Repeat("0123456789abcdef", 20<<10), strings.Repeat("0123456789abcdef", 4<<10)
	tests := []struct {
		name  string
		raw   string
		head  bool
		want  got
		reuse bool
	}{
		{"value", answer(200, "value", `ETag: "e"`, "content-type: text/x", "Last-Modified: y", "Accept-Ranges: bytes", "Date: z"), false,
			got{status: 200, body: "value", length: 5, value: true, header: map[string]string{"Version": "v1", "ETag": `"e"`, "Content-Type": "text/x", "Last-Modified": "y", "Accept-Ranges": "bytes"}}, true},
		{"content", answer(200, "value", "x-sequins-CONTENT: 0123456789abcdef.0123456789abcdef", "X-Sequins-Content: second", "X-Sequins-Contents: x"), false,
			got{status: 200, body: "value", length: 5, value: true, header: map[string]string{"Version": "v1", "Content": "0123456789abcdef.0123456789abcdef"}}, true},
		{"empty", answer(200, ""), false, got{status: 200, value: true}, true},
		{"medium", answer(200, medium), false, got{status: 200, body: medium, length: 64 << 10, value: true}, true},
		{"just larger", answer(200, medium+"x"), false, got{status: 200, body: medium + "x", length: 64<<10 + 1}, true},
		{"large", answer(200, large), false, got{status: 200, body: large, length: 320 << 10}, true},
		{"range", answer(206, "al", "Content-Range: bytes 1-2/5"), false, got{status: 206, body: "al", length: 2, value: true, header: map[string]string{"Version": "v1", "Content-Range": "bytes 1-2/5"}}, true},
		{"absent", answer(404, "no such key\n"), false, got{status: 404, body: "no such key\n", length: 12, value: true}, true},
		{"not modified", "HTTP/1.1 304 Not Modified\r\nX-Sequins-Version: v1\r\n\r\n", false, got{status: 304, length: -1, value: true}, true},
		{"condition", answer(412, "no"), false, got{status: 412, body: "no", length: 2, value: true}, true},
		{"bad range", answer(416, ""), false, got{status: 416, value: true}, true},
		{"head", strings.TrimSuffix(answer(200, large), large), true, got{status: 200, length: 320 << 10, value: true}, true},
		{"head, absent", strings.TrimSuffix(answer(404, "x"), "x"), true, got{status: 404, length: 1, value: true}, true},
		{"closing", answer(200, "value", "Connection: close"), false, got{status: 200, body: "value", length: 5, value: true}, false},
		{"closing, in a list", answer(200, "value", "Connection: x, CLOSE"), false, got{status: 200, body: "value", length: 5, value: true}, false},
		{"HTTP/1.0", strings.Replace(answer(200, "value"), "1.1", "1.0", 1), false, got{status: 200, body: "value", length: 5, value: true}, false},
		{"absent, without a length", "HTTP/1.1 404 Not Found\r\nX-Sequins-Version: v1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", false, got{status: 404, length: -1}, false},
		{"bytes behind it", answer(200, "value") + "x", false, got{status: 200, body: "value", length: 5, value: true}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := listen(t, func(c net.Conn, req *http.Request) bool {
				if (req.Method == "HEAD") != test.head || req.RequestURI != "/db/k?proxy=v1" {
					t.Errorf("asked %s %s", req.Method, req.RequestURI)
				}
				_, err := io.WriteString(c, test.raw)
				return err == nil
			})
			c := client(t, Options{Timeout: ample})
			q := query(p)
			q.Head = test.head
			if test.want.header == nil {
				test.want.header = map[string]string{"Version": "v1"}
			}
			test.want.peer = p.addr
			const times = 5
			for range times {
				g, err := fetch(c, q)
				expect.NoError(t, err)
				if diff := cmp.Diff(test.want, g, cmp.AllowUnexported(got{})); diff != "" {
					t.Fatalf("-want +got:\n%.2000s", diff)
				}
			}
			want := int64(times)
			if test.reuse {
				want = 1
			}
			if n := p.accepted.Load(); n != want {
				t.Errorf("%d connections for %d requests, want %d", n, times, want)
			}
		})
	}
}

// Answers that cannot be used, and what the error says.
func TestUnusable(t *testing.T) {
	tests := map[string]string{
		answer(501, "not here"):          "does not have the version or the partition",
		answer(500, "broken"):            "status 500",
		answer(503, ""):                  "status 503",
		answer(302, "", "Location: /"):   "status 302",
		answer(400, ""):                  "status 400",
		answer(204, ""):                  "status 204",
		"HTTP/1.1 404 Not Found\r\n\r\n": "does not have the version",
		"HTTP/1.1 200 OK\r\nX-Sequins-Version: v1\r\n\r\nendless":                                                      "without a length",
		"HTTP/1.1 200 OK\r\nX-Sequins-Version: v1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n":                      "without a length",
		"HTTP/1.1 200 OK\r\nX-Sequins-Version: v1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n": "without a length",
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx":                                                                `from version ""`,
		"HTTP/1.1 200 OK\r\nX-Sequins-Version: v0\r\nContent-Length: 1\r\n\r\nx":                                       `from version "v0"`,
		"HTTP/1.1 100 Continue\r\n\r\n" + answer(200, "x"):                                                             "interim",
		"HTTP/1.1 200 OK\r\nX-Sequins-Version: v1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx":                  "Content-Length",
		"HTTP/1.1 200 OK\r\nX-Sequins-Version: v1\r\nContent-Length: -1\r\n\r\nx":                                      "Content-Length",
		"HTTP/1.1 200 OK\r\nX-Sequins-Version: v1\r\nContent-Length: 99999999999999999999\r\n\r\nx":                    "Content-Length",
		"HTTP/1.1 200 OK\r\nX-Sequins-Version: v1\r\nContent-Length: 1\r\n ETag: folded\r\n\r\nx":                      "malformed header",
		"HTTP/1.1 200 OK\r\nX-Sequins-Version: v1\r\nContent-Length : 1\r\n\r\nx":                                      "malformed header",
		"HTTP/1.1 200 OK\r\nX-Sequins-Version: v1\r\nETag: a\x00b\r\nContent-Length: 1\r\n\r\nx":                       "control character",
		"HTTP/2.0 200 OK\r\n\r\n":                              "status line",
		"HTTP/1.1 20 OK\r\n\r\n":                               "status line",
		"HTTP/1.1 2000 OK\r\n\r\n":                             "status line",
		"SSH-2.0-OpenSSH_9.6\r\n\r\n":                          "status line",
		"\r\n\r\n":                                             "status line",
		strings.Repeat("x", readBuffer):                        "a header of more than 8192 bytes",
		answer(200, "", "X: "+strings.Repeat("x", readBuffer)): "a header of more than 8192 bytes",
	}
	for raw, want := range tests {
		p := listen(t, says(raw))
		c := client(t, Options{Timeout: ample})
		_, err := fetch(c, query(p))
		if !errors.Is(err, ErrNoPeers) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), p.addr) {
			t.Errorf("%.100q: %v", raw, err)
		}
		c.Close()
	}
}
