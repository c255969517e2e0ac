package proxy

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// scripted is a connection on which certain bytes come, in pieces.
type scripted struct {
	net.Conn
	rest  []byte
	piece int
}

func (s *scripted) Read(p []byte) (int, error) {
	if len(s.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, s.rest[:min(s.piece, len(s.rest))])
	s.rest = s.rest[n:]
	return n, nil
}

func (s *scripted) Write(p []byte) (int, error) { return len(p), nil }
func (s *scripted) SetDeadline(time.Time) error { return nil }
func (s *scripted) Close() error                { return nil }

// For any bytes from a peer, in any pieces: what is accepted as an answer is the same answer to
// net/http, and the connection is reused only if nothing but the answer has arrived.
func FuzzAnswer(f *testing.F) {
	for _, raw := range []string{
		answer(200, "value", `ETag: "e"`, "Date: x", "Connection: keep-alive"), answer(404, "no such key\n"), answer(206, "al", "Content-Range: bytes 1-2/5"),
		answer(200, strings.Repeat("x", 10<<10)), answer(200, strings.Repeat("x", 70<<10)), answer(200, "a") + answer(200, "b"),
		"HTTP/1.1 304 Not Modified\r\nX-Sequins-Version: v1\r\n\r\n", answer(501, ""), answer(500, "x"),
		"HTTP/1.0 404 \nX-Sequins-Version: v1\nTransfer-Encoding: chunked\nContent-Length: 3\n\n0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nX-Sequins-Version:v1\r\ncontent-length:\t1 \r\nConnection: a,close\r\n\r\nx",
		answer(404, "x", "Other: \x06"), answer(404, "x", "Other: \rY: z", "A:\x7f"), answer(200, "x", "Transfer-Encoding: gzip"),
		answer(404, "x", "Transfer-Encoding:"), answer(404, "x", "Transfer-Encoding: chunked", "Transfer-Encoding: chunked"),
		answer(200, "x", "Transfer-Encoding: chunked", "Trailer: Content-Length"), answer(204, "x"), answer(404, "x", "Content-Length: 1"),
		"HTTP/1.0 304 \nX-Sequins-Version:v1\nContent-Length:1\n\n",
		answer(404, "x", "Content-Type: \xff\u00e9", "Content-Type: b", ":v", "a b: c", " folded"),
	} {
		f.Add([]byte(raw), uint16(1), false)
		f.Add([]byte(raw), uint16(50000), strings.Contains(raw, "304"))
	}
	o, _ := quiet(Options{})
	client := New(o)
	f.Cleanup(client.Close)
	f.Fuzz(func(t *testing.T, raw []byte, piece uint16, head bool) {
		source := &scripted{rest: raw, piece: int(piece) + 1}
		c := newConn(source, newPeer(client, "a"))
		c.peer.slots <- struct{}{}
		a := attempt{race: &race{c: client, q: Query{Version: "v1"}}, peer: c.peer, conn: c}
		err := c.ask(&race{q: Query{Head: head}}, time.Time{})
		if err == nil {
			err = a.judge()
		}
		if err != nil {
			return
		}
		resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(raw)), &http.Request{Method: map[bool]string{true: "HEAD", false: "GET"}[head]})
		if err != nil {
			t.Fatalf("net/http: %v", err)
		}
		h := &c.header
		// The length of a 304 is that of what it stands for, if anything is said of it; net/http says 0.
		if resp.StatusCode != h.status || h.status != http.StatusNotModified && h.length >= 0 && resp.ContentLength >= 0 && resp.ContentLength != h.length {
			t.Fatalf("%d, %d bytes; net/http: %d, %d bytes", h.status, h.length, resp.StatusCode, resp.ContentLength)
		}
		for name, v := range map[string][]byte{"X-Sequins-Version": h.Version, "X-Sequins-Content": h.Content, "Content-Type": h.ContentType, "ETag": h.ETag,
			"Last-Modified": h.LastModified, "Content-Range": h.ContentRange, "Accept-Ranges": h.AcceptRanges} {
			if got := resp.Header.Get(name); got != string(v) {
				t.Fatalf("%s: %q; net/http: %q", name, v, got)
			}
		}
		body, err := io.ReadAll(&body{conn: c})
		if h.length < 0 && c.body == nil {
			if c.reusable() {
				t.Fatal("a connection with an answer of unknown length is used again")
			}
			return
		}
		want, wantErr := io.ReadAll(resp.Body)
		if !bytes.Equal(body, want) || (err == nil) != (wantErr == nil) || c.whole() && err != nil {
			t.Fatalf("body: %d bytes, %v; net/http: %d bytes, %v", len(body), err, len(want), wantErr)
		}
		// What comes behind an answer that fills the buffer is left in the socket, where it is found before the next use.
		if c.reusable() && (resp.Close || err != nil || len(source.rest) > 0 && source.piece > len(raw) && len(raw) <= readBuffer) {
			t.Fatalf("the connection is used again: close %v, error %v, %d bytes behind the answer", resp.Close, err, len(source.rest))
		}
		if read := len(raw) - len(source.rest); c.reusable() && read != c.start+len(body) {
			t.Fatalf("the connection is used again after %d bytes of an answer of %d", read, c.start+len(body))
		}
	})
}

// A query that can be sent is one request, with the path as it came.
func FuzzRequest(f *testing.F) {
	f.Add([]byte("/db/k"), "v1", []byte("bytes=0-1"), false)
	f.Add([]byte("/db/a//../%2F+#\xff%"), "v 1&\u00e9", []byte("00-1"), true)
	f.Add([]byte("/db/a b"), "", []byte("x\r\nY: z"), true)
	f.Fuzz(func(t *testing.T, path []byte, version string, value []byte, head bool) {
		q := &Query{Path: path, Version: version, Head: head, Fields: []Field{{"Range", value}}}
		if q.check() != nil {
			return
		}
		raw := append(q.appendTo(nil), "Host: h:1\r\n\r\n"...)
		lines := strings.Split(string(raw), "\r\n")
		if len(lines) != 5 || lines[1] != "Range: "+string(value) || lines[2] != "Host: h:1" || lines[3]+lines[4] != "" {
			t.Fatalf("the request is %q", raw)
		}
		parts := strings.Split(lines[0], " ")
		target, asked, _ := strings.Cut(parts[1], "?proxy=")
		if got, err := url.QueryUnescape(asked); err != nil || got != version || len(parts) != 3 || target != string(path) || strings.ContainsAny(asked, "&?#") {
			t.Fatalf("the request line is %q", lines[0])
		}
	})
}

// What cannot be sent is not.
func TestBadQueries(t *testing.T) {
	c := client(t, Options{})
	for _, q := range []Query{
		{}, {Path: []byte("db/k")}, {Path: []byte("/db/a b")}, {Path: []byte("/db/a\r\nX: y")}, {Path: []byte("/db/k?proxy=v0&")}, {Path: []byte("/db/\x7f")},
		{Path: []byte("/db/k"), Fields: []Field{{"Range", []byte("x\nY: z")}}},
	} {
		q.Peers = []string{"localhost:1"}
		if _, err := c.Fetch(context.Background(), &q); !errors.Is(err, errQuery) {
			t.Errorf("%q, %q: %v", q.Path, q.Fields, err)
		}
	}
}
