package server

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"sequins/observe/status"
	"sequins/proxy"
	"sequins/test/expect"
)

// decoded returns the body of an answer without its content coding.
func decoded(t *testing.T, got answer) string {
	t.Helper()
	var r io.Reader = strings.NewReader(got.body)
	var err error
	switch coding := got.header.Get("Content-Encoding"); coding {
	case "":
	case "gzip":
		r, err = gzip.NewReader(r)
	case "zstd":
		var d *zstd.Decoder
		if d, err = zstd.NewReader(r); err == nil {
			defer d.Close()
		}
		r = d
	default:
		t.Fatalf("the coding is %q", coding)
	}
	expect.NoError(t, err)
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatalf("%s: %v", got.header.Get("Content-Encoding"), err)
	}
	return string(b)
}

var both = Delivery{Codings: []string{"zstd", "gzip"}, MinEncoded: 100}

// What is encoded, and how: every kind of answer of every size, for GET and HEAD alike.
func TestEncodedAnswers(t *testing.T) {
	text := func(n int) string { return strings.Repeat("words ", n/6+1)[:n] }
	c := catalogOf(t, map[string]string{"small": text(99), "least": text(100), "64K": text(64 << 10), "large": text(300 << 10), "noise": noise(1, 100_000), "empty": ""})
	c.state = busyStatus()
	s := start(t, c, testOptions{Delivery: both})
	plain := start(t, c, testOptions{})
	for target, encoded := range map[string]bool{
		"/db/small": false, "/db/least": true, "/db/64K": true, "/db/large": true, "/db/noise": true, "/db/empty": false, "/db/absent": false,
		"/db/large?proxy=v1": false, "/db?key=64K&key=large": true, "/db?key=empty": false, "/db?prefix=": true, "/db?start=large&end=m": true,
		"/db?count": false, "/": true, "/names": true, "/healthz": true, "/livez": false, "/-/openapi.yaml": true,
	} {
		for _, accept := range []string{"*/*", "application/octet-stream", "text/html"} {
			want := plain.do(t, "GET", target, "Accept: "+accept)
			for accepts, coding := range map[string]string{"gzip, zstd": "zstd", "gzip": "gzip", "br": "", "": ""} {
				lines := []string{"Accept-Encoding: " + accepts, "Accept: " + accept}
				got, head := s.do(t, "GET", target, lines...), s.do(t, "HEAD", target, lines...)
				what := fmt.Sprintf("%s %q", target, lines)
				if !encoded {
					coding = ""
				}
				if h := got.header.Get("Content-Encoding"); h != coding || got.status != want.status {
					t.Errorf("%s: %d, coding %q, want %d, %q", what, got.status, h, want.status, coding)
				}
				isStatus := strings.Contains("/ /names /healthz", target) // with times
				if body := decoded(t, got); body != want.body && !isStatus {
					t.Errorf("%s: %d bytes, want %d", what, len(body), len(want.body))
				}
				checkEncoded(t, what, got, want, coding)
				checkHead(t, what, got, head)
			}
		}
	}
}

// checkEncoded compares the header of an answer with that of the same request to a server that encodes nothing.
func checkEncoded(t *testing.T, what string, got, want answer, coding string) {
	t.Helper()
	h, tag := got.header, want.header.Get("Etag")
	varies := got.status < 400 && !strings.Contains(what, "proxy=")
	if strings.Contains(h.Get("Vary"), "Accept-Encoding") != varies || len(h["Vary"]) > 1 {
		t.Errorf("%s: Vary is %q", what, h["Vary"])
	}
	if coding == "" {
		if h.Get("Etag") != tag || h.Get("Accept-Ranges") != want.header.Get("Accept-Ranges") || h.Get("Content-Length") != want.header.Get("Content-Length") && !strings.Contains(h.Get("Cache-Control"), "no-store") {
			t.Errorf("%s: %v, want %v", what, h, want.header)
		}
		return
	}
	if tag != "" {
		tag = "W/" + tag
	}
	if h.Get("Etag") != tag || h["Accept-Ranges"] != nil || h.Get("Content-Type") != want.header.Get("Content-Type") || h.Get("X-Sequins-Version") != want.header.Get("X-Sequins-Version") {
		t.Errorf("%s: %v, want %v", what, h, want.header)
	}
}

// checkHead compares the answers to GET and HEAD. Fields that depend on the encoded body may be missing.
func checkHead(t *testing.T, what string, get, head answer) {
	t.Helper()
	for _, name := range []string{"Content-Encoding", "Etag", "Vary", "Content-Type", "Accept-Ranges", "X-Sequins-Version", "Cache-Control"} {
		if get.header.Get(name) != head.header.Get(name) {
			t.Errorf("HEAD %s: %s is %q, and of GET %q", what, name, head.header.Get(name), get.header.Get(name))
		}
	}
	if length := head.header.Get("Content-Length"); length != "" && length != fmt.Sprint(len(get.body)) && !strings.Contains(get.header.Get("Cache-Control"), "no-store") || get.status != head.status {
		t.Errorf("HEAD %s: %d, Content-Length %s; GET: %d, %d bytes", what, head.status, length, get.status, len(get.body))
	}
}

// A client revalidates with the tag of either representation, and what is about bytes is about those of the value.
func TestEncodedConditionsAndRanges(t *testing.T) {
	value := strings.Repeat("words ", 1000)
	s := start(t, catalogOf(t, map[string]string{"a": value}), testOptions{Delivery: both})
	const gzip = "Accept-Encoding: gzip"
	strong, weak := etagOf(value), "W/"+etagOf(value)
	for _, test := range []struct {
		lines       []string
		status      int
		etag        string
		coding      string
		contentType bool
	}{
		{[]string{gzip}, 200, weak, "gzip", true},
		{[]string{gzip, "If-None-Match: " + weak}, 304, weak, "", false},
		{[]string{gzip, "If-None-Match: " + strong}, 304, weak, "", false},
		{[]string{gzip, `If-None-Match: "x"`}, 200, weak, "gzip", true},
		{[]string{"If-None-Match: " + weak}, 304, strong, "", false},
		{[]string{gzip, "If-Match: " + strong}, 200, strong, "", true},
		{[]string{gzip, "If-Match: " + weak}, 412, strong, "", true},
		{[]string{gzip, "Range: bytes=1-2"}, 206, strong, "", true},
		{[]string{gzip, "If-Range: " + strong, "Range: bytes=1-2"}, 206, strong, "", true},
		{[]string{gzip, "If-Range: " + weak, "Range: bytes=1-2"}, 200, strong, "", true},
		{[]string{gzip, "Range: bytes=100000-"}, 416, "", "", true},
	} {
		got := s.get(t, "/db/a", test.lines...)
		h := got.header
		if got.status != test.status || h.Get("Etag") != test.etag || h.Get("Content-Encoding") != test.coding || (h.Get("Content-Type") != "") != test.contentType {
			t.Errorf("%q: %d %v", test.lines, got.status, h)
		}
		if got.status < 400 && !strings.Contains(h.Get("Vary"), "Accept-Encoding") {
			t.Errorf("%q: Vary is %q", test.lines, h.Get("Vary"))
		}
		if got.status == 206 && got.body != value[1:3] {
			t.Errorf("%q: %q", test.lines, got.body)
		}
	}
}

// Values that are compressed in themselves, or small, are left alone.
func TestCompressedTypes(t *testing.T) {
	types := map[string]bool{
		"": true, "application/json": true, "text/plain; charset=utf-8": true, "application/octet-stream": true, "image/svg+xml": true, "application/x-protobuf": true,
		"image/png": false, "IMAGE/JPEG": false, "video/mp4": false, "audio/ogg": false, "application/zip": false, "application/gzip; x=y": false, "font/woff2": false,
		"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": false, "application/pdf": false, "application/zstd": false,
	}
	for media, encoded := range types {
		s := start(t, catalogOf(t, map[string]string{"a": strings.Repeat("x", 1000), "b": "y"}), testOptions{Delivery: both, ContentType: func(string) string { return media }})
		if got := s.get(t, "/db/a", "Accept-Encoding: gzip"); (got.header.Get("Content-Encoding") != "") != encoded || len(decoded(t, got)) != 1000 {
			t.Errorf("%q: %v", media, got.header)
		}
		if got := s.get(t, "/db/b", "Accept-Encoding: gzip, identity;q=0"); got.header.Get("Content-Encoding") != "" || len(decoded(t, got)) != 1 {
			t.Errorf("%q, of one byte: %v", media, got.header)
		}
	}
}

// Values of other nodes are encoded by the node that the client has asked.
func TestEncodedFromPeers(t *testing.T) {
	records := map[string]string{"small": strings.Repeat("x", 1000), "large": strings.Repeat("words ", 100_000)}
	holder := start(t, catalogOf(t, records), testOptions{Delivery: both})
	asker := startAskerWith(t, testOptions{Delivery: both}, proxy.Options{Timeout: patience}, holder.addr)
	for key, value := range records {
		got := asker.get(t, "/db/"+key, "Accept-Encoding: gzip")
		if got.header.Get("Content-Encoding") != "gzip" || decoded(t, got) != value || got.header.Get("Etag") != "W/"+etagOf(value) || got.header.Get("X-Sequins-Proxied-To") != holder.addr {
			t.Errorf("%s: %d %v", key, got.status, got.header)
		}
		for _, tag := range []string{etagOf(value), "W/" + etagOf(value)} {
			if got := asker.get(t, "/db/"+key, "Accept-Encoding: gzip", "If-None-Match: "+tag); got.status != 304 || got.header.Get("Etag") != "W/"+etagOf(value) {
				t.Errorf("%s, %s: %d %v", key, tag, got.status, got.header)
			}
		}
	}
}

// The client of net/http asks for gzip on its own, and decodes it.
func TestEncodedForNetHTTP(t *testing.T) {
	value := strings.Repeat("words ", 10_000)
	s := start(t, catalogOf(t, map[string]string{"a": value}), testOptions{Delivery: both})
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequest("GET", "http://"+s.addr+"/db/a", nil)
	expect.NoError(t, err)
	for range 2 {
		resp, err := transport.RoundTrip(req)
		expect.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if h := resp.Header; err != nil || string(body) != value || !resp.Uncompressed || h.Get("X-Sequins-Version") != "v1" || h.Get("Etag") != "W/"+etagOf(value) {
			t.Errorf("%d bytes, %v, %v", len(body), err, h)
		}
	}
}

// A client that does not read its answer keeps an encoder. When all are in use, answers are not encoded.
func TestEncodersAreBounded(t *testing.T) {
	s := start(t, catalogOf(t, map[string]string{"a": strings.Repeat("x", 1000)}), testOptions{Delivery: both})
	s.encoding.Add(maxEncoders)
	defer s.encoding.Add(-maxEncoders)
	if got := s.get(t, "/db/a", "Accept-Encoding: gzip"); got.header.Get("Content-Encoding") != "" || len(got.body) != 1000 || !strings.Contains(got.header.Get("Vary"), "Accept-Encoding") {
		t.Errorf("%+v", got)
	}
}

// Encoders are returned, however answers end.
func TestEncodersAreReturned(t *testing.T) {
	c := catalogOf(t, map[string]string{"a": strings.Repeat("words ", 1000), "large": noise(1, 32<<20)})
	c.state = busyStatus()
	s := start(t, c, testOptions{Delivery: both, Timeouts: Timeouts{Write: time.Second}})
	for range 2 * maxEncoders {
		if got := s.get(t, "/db/a", "Accept-Encoding: gzip"); got.header.Get("Content-Encoding") != "gzip" {
			t.Fatalf("%v", got.header)
		}
	}
	for range 3 { // clients that go in the middle
		conn := s.dial(t)
		fmt.Fprint(conn, "GET /db/large HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\n\r\n")
		if _, err := conn.Read(make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
		conn.Close()
	}
	expectFree(t, s)
}

func expectFree(t *testing.T, s *running) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for s.encoding.Load() > 0 {
		if time.Now().After(deadline) {
			t.Fatalf("%d encoders are in use", s.encoding.Load())
		}
		time.Sleep(time.Millisecond)
	}
}

// What an ordered read sends arrives while it goes on, and can be decoded.
func TestEncodedStreamIsFlushed(t *testing.T) {
	w := &writer{r: &request{s: &Server{}, delivery: &delivery{Delivery: Delivery{Codings: []string{"gzip"}}}, method: "GET", code: 200}, coding: "gzip", length: -1}
	out := &flushed{header: http.Header{}}
	w.ResponseWriter = out
	line := strings.Repeat("a line of an ordered read\n", 100)
	for i := range 100 {
		w.Write([]byte(line))
		if out.flushes > 0 {
			t.Logf("flushed after %d bytes", (i+1)*len(line))
			break
		}
	}
	r, err := gzip.NewReader(bytes.NewReader(out.body.Bytes()[:out.at]))
	expect.NoError(t, err)
	got, err := io.ReadAll(r)
	if err != io.ErrUnexpectedEOF || int64(len(got)) != w.taken || len(got) > flushBytes+len(line) {
		t.Errorf("%d of %d bytes have arrived: %v", len(got), w.taken, err)
	}
	w.flushed = time.Now().Add(-flushTime)
	before := out.flushes
	w.Write([]byte("more\n"))
	if out.flushes == before {
		t.Errorf("%v after a flush there is none", flushTime)
	}
	w.endEncoding()
}

// flushed is a ResponseWriter that records flushes.
type flushed struct {
	header  http.Header
	body    bytes.Buffer
	flushes int
	at      int // length of the body at the last flush
}

func (f *flushed) Header() http.Header         { return f.header }
func (f *flushed) WriteHeader(int)             {}
func (f *flushed) Write(p []byte) (int, error) { return f.body.Write(p) }
func (f *flushed) FlushError() error {
	f.flushes++
	f.at = f.body.Len()
	return nil
}

// An answer that breaks off is not a complete one to a client that decodes it.
func TestEncodedAnswerBreaksOff(t *testing.T) {
	s := start(t, catalogOf(t, map[string]string{"a": "x"}), testOptions{Delivery: both, Peers: func() []status.Peer { return nil }})
	broken := start(t, away(t), testOptions{Delivery: both, Logger: s.opts.Logger, Proxy: proxyFunc(func(*proxy.Query) (*proxy.Answer, error) {
		a := response(t, 200, strings.Repeat("words ", 100_000), proxy.Header{})
		a.Length += 100 // so that it ends too early
		return a, nil
	})})
	for _, coding := range both.Codings {
		c := broken.dial(t)
		fmt.Fprintf(c, "GET /db/a HTTP/1.1\r\nHost: x\r\nAccept-Encoding: %s\r\n\r\n", coding)
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		expect.NoError(t, err)
		if _, err := io.ReadAll(resp.Body); err == nil || resp.Header.Get("Content-Encoding") != coding {
			t.Errorf("%s: an answer that broke off looks complete: %v", coding, resp.Header)
		}
		resp.Body.Close()
	}
	expectFree(t, broken)
}
