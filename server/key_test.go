package server

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/google/go-cmp/cmp"

	"sequins/test/contents"
	"sequins/test/versions"
	"sequins/version"
)

func etagOf(value string) string { return fmt.Sprintf(`"%016x"`, xxhash.Sum64String(value)) }

func TestGet(t *testing.T) {
	s := start(t, catalogOf(t, map[string]string{"a": "one", "empty": ""}), testOptions{})
	for key, value := range map[string]string{"a": "one", "empty": ""} {
		got := s.get(t, "/db/"+key)
		if got.status != 200 || got.body != value || got.length != int64(len(value)) || got.closed {
			t.Errorf("GET %s: %+v", key, got)
		}
		date, err := http.ParseTime(got.header.Get("Date"))
		if age := time.Since(date); err != nil || age < -time.Second || age > time.Minute {
			t.Errorf("Date: %s", got.header.Get("Date"))
		}
		got.header.Del("Date")
		want := http.Header{
			"X-Sequins-Version": {"v1"},
			"Content-Length":    {fmt.Sprint(len(value))},
			"Content-Type":      {"application/octet-stream"},
			"Last-Modified":     {"Sat, 31 Jan 2026 10:00:00 GMT"},
			"Etag":              {etagOf(value)},
			"Accept-Ranges":     {"bytes"},

			"X-Content-Type-Options": {"nosniff"},
			"Vary":                   {"X-Sequins-At-Least, X-Sequins-Version"},
		}
		if diff := cmp.Diff(want, got.header); diff != "" {
			t.Errorf("headers of %s (-want +got):\n%s", key, diff)
		}
	}
}

func TestHead(t *testing.T) {
	s := start(t, catalogOf(t, map[string]string{"a": "one", "large": strings.Repeat("x", 1<<20)}), testOptions{})
	for _, target := range []string{"/db/a", "/db/large", "/db/absent", "/nodb/a", "/", "/db", "/healthz"} {
		head, get := s.do(t, "HEAD", target), s.get(t, target)
		if head.body != "" || head.status != get.status || head.length != get.length {
			t.Errorf("HEAD %s: %d, %d bytes announced and %q sent; GET: %d, %d bytes", target, head.status, head.length, head.body, get.status, get.length)
		}
		head.header.Del("Date")
		get.header.Del("Date")
		if diff := cmp.Diff(get.header, head.header); diff != "" {
			t.Errorf("HEAD %s (-GET +HEAD):\n%s", target, diff)
		}
	}
}

func TestAbsent(t *testing.T) {
	c := catalogOf(t, map[string]string{"a": "one"})
	c.sets["none"] = version.NewSet("none")
	empty := version.NewSet("empty")
	versions.Activate(t, empty, version.New(version.Info{DB: "empty", Content: contents.Of("v0"), Following: version.Solo{}}))
	c.sets["empty"] = empty
	s := start(t, c, testOptions{})
	tests := []struct{ target, version, body string }{
		{"/db/b", "v1", "no such key\n"},
		{"/db//a", "v1", "no such key\n"},
		{"/empty/a", "v0", "no such key\n"},
		{"/nodb/a", "", "no such db\n"},
		{"//db/a", "", "no such db\n"},
		{"//", "", "no such db\n"},
		{"/nodb", "", "no such db\n"},
		{"/nodb/", "", "no such db\n"},
		{"/healthz/a", "", "no such db\n"},
	}
	for _, test := range tests {
		got := s.get(t, test.target)
		if got.status != 404 || got.header.Get("X-Sequins-Version") != test.version || got.body != test.body || got.header.Get("Etag") != "" {
			t.Errorf("%s: %+v", test.target, got)
		}
		if _, there := got.header["X-Sequins-Version"]; there != (test.version != "") {
			t.Errorf("%s: X-Sequins-Version is there: %v", test.target, there)
		}
	}
}

// 404 would deny keys that may exist.
func TestUnready(t *testing.T) {
	c := catalogOf(t, map[string]string{"a": "one"})
	c.sets["none"] = version.NewSet("none")
	s := start(t, c, testOptions{})
	for _, target := range []string{"/none/a", "/perhaps/a"} {
		got := s.get(t, target)
		if got.status != 503 || got.header.Get("Retry-After") != "1" || got.body != "no version of this db can be read on this node yet\n" {
			t.Errorf("%s: %+v", target, got)
		}
		if got := s.get(t, target+"?proxy=1"); got.status != 501 {
			t.Errorf("%s for a peer: %+v", target, got)
		}
	}
}

// A balancer can ask for one db.
func TestReadyForOneDB(t *testing.T) {
	s := start(t, catalogOf(t, map[string]string{"a": "one"}), testOptions{})
	for target, want := range map[string]int{"/readyz": 200, "/readyz?db=db": 200, "/readyz?db=nuts": 503, "/readyz?db=%zz": 400} {
		if got := s.get(t, target); got.status != want {
			t.Errorf("%s: %+v", target, got)
		}
	}
}

// Every key can be requested escaped, and as raw bytes if the request line allows them.
func TestKeysAreBytes(t *testing.T) {
	records := map[string]string{}
	for b := range 256 {
		records[string([]byte{'k', byte(b)})] = fmt.Sprint("byte ", b)
	}
	odd := []string{
		"/", "//", "a//b", "..", "../..", "./a", "a/./b/", "a+b", "a b", "a%b", "%2F", "%", "#", "a#b", "?", "a?b", "a&b=c;d",
		"http://h/x", "\x00", "\xff\xfe", "é", "日本", "\"'<>`{}|\\^", strings.Repeat("x", 64<<10), strings.Repeat("\x00", 64<<10),
	}
	for i, k := range odd {
		records[k] = fmt.Sprint("odd ", i)
	}
	s := start(t, catalogOf(t, records), testOptions{})
	c := s.dial(t)
	r := bufio.NewReader(c)
	for key, value := range records {
		for _, target := range []string{escape(key, "%%%02X"), escape(key, "%%%02x"), sparing(key)} {
			fmt.Fprintf(c, "GET /db/%s HTTP/1.1\r\nHost: x\r\n\r\n", target)
			if got := read(t, r, "GET"); got.status != 200 || got.body != value {
				t.Errorf("key %.20q as %.60q: %d %q, want %q", key, target, got.status, got.body, value)
			}
		}
	}
	for target, key := range map[string]string{
		"http://other/db/a+b":       "a+b",
		"HTTPS://other:1/db//":      "/",
		"/%64%62/a+b":               "a+b",
		"/db/a+b?":                  "a+b",
		"/db/a+b?explained&x=%zz#y": "a+b",
		"/db/..?proxy=":             "..",
		"/db/http://h/x":            "http://h/x",
		"http://h:80/db/http://h/x": "http://h/x",
	} {
		if got := s.get(t, target); got.status != 200 || got.body != records[key] {
			t.Errorf("%s: %d %q, want %q", target, got.status, got.body, records[key])
		}
	}
}

// escape writes every byte of a key as an escape.
func escape(key, format string) string {
	var b strings.Builder
	for i := range len(key) {
		fmt.Fprintf(&b, format, key[i])
	}
	return b.String()
}

// sparing escapes only what cannot stand in a request line.
func sparing(key string) string {
	var b strings.Builder
	for i := range len(key) {
		if c := key[i]; c <= ' ' || c == 0x7f || c == '?' || c == '%' {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

func TestRefused(t *testing.T) {
	s := start(t, catalogOf(t, map[string]string{"a": "one"}), testOptions{})
	const end = " HTTP/1.1\r\nHost: x\r\n\r\n"
	megabyte := strings.Repeat("x", 1<<20)
	tests := []struct {
		name, request string
		status        int
		closed        bool
	}{
		{"bad escape", "GET /db/%4" + end, 400, false},
		{"bad escape of the db", "GET /%zz/a" + end, 400, false},
		{"bad escape of the proxy", "GET /db/a?proxy=%z" + end, 400, false},
		{"space", "GET /db/a b" + end, 400, true},
		{"control byte", "GET /db/a\x01" + end, 400, true},
		{"NUL", "GET /db/a\x00" + end, 400, true},
		{"tab", "GET /db/a\tb" + end, 400, true},
		{"asterisk", "GET *" + end, 400, false},
		{"authority", "GET x:80" + end, 400, false},
		{"relative", "GET db/a" + end, 400, true},
		{"no target", "GET" + end, 400, true},
		{"no version", "GET /db/a\r\nHost: x\r\n\r\n", 400, true},
		{"alien version", "GET /db/a HTTQ/1.1\r\nHost: x\r\n\r\n", 400, true},
		{"no host", "GET /db/a HTTP/1.1\r\n\r\n", 400, true},
		{"two hosts", "GET /db/a HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", 400, true},
		{"header without colon", "GET /db/a HTTP/1.1\r\nHost: x\r\nfoo\r\n\r\n", 400, true},
		{"two lengths", "GET /db/a HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nContent-Length: 1\r\n\r\n", 400, true},
		{"TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400, true},
		{"key of 64 KiB and one", "GET /db/" + megabyte[:64<<10] + "y" + end, 414, false},
		{"endless line", "GET /db/" + megabyte + end, 431, true},
		{"headers of 40 KiB", "GET /db/a HTTP/1.1\r\nHost: x\r\nX: " + megabyte[:40<<10] + "\r\n\r\n", 431, false},
		{"endless headers", "GET /db/a HTTP/1.1\r\nHost: x\r\nX: " + megabyte + "\r\n\r\n", 431, true},
		{"headers of 31 KiB", "GET /db/a HTTP/1.1\r\nHost: x\r\nX: " + megabyte[:31<<10] + "\r\n\r\n", 200, false},
		{"GET with a body", "GET /db/a HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody", 200, true},
		{"GET with a huge body", "GET /db/a HTTP/1.1\r\nHost: x\r\nContent-Length: 1048576\r\n\r\n" + megabyte, 200, true},
		{"GET with a chunked body", "GET /db/a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n", 200, true},
		{"GET with a body that never comes", "GET /db/a HTTP/1.1\r\nHost: x\r\nContent-Length: 1048576\r\n\r\n", 200, true},
		{"GET with an empty body", "GET /db/a HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", 200, false},
		{"empty lines before", "\r\n\r\n\nGET /db/a HTTP/1.1\r\nHost: x\r\n\r\n", 200, false},
		{"bare line ends", "GET /db/a HTTP/1.1\nHost: x\n\n", 200, false},
	}
	for _, test := range tests {
		got := s.raw(t, "GET", test.request)
		if got.status != test.status || got.closed != test.closed {
			t.Errorf("%s: %d, closed %v; want %d, %v", test.name, got.status, got.closed, test.status, test.closed)
		}
		if body := strings.TrimSuffix(got.body, "\n"); test.status != 200 && (body == "" || strings.Contains(body, "\n") || got.header.Get("Content-Type") != "text/plain; charset=utf-8") {
			t.Errorf("%s: the body is not a line of text: %q", test.name, got.body)
		}
	}
	if got := s.get(t, "/db/a"); got.status != 200 {
		t.Errorf("after all that: %d", got.status)
	}
}

func TestMethods(t *testing.T) {
	s := start(t, catalogOf(t, map[string]string{"a": "one"}), testOptions{})
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW", "get"} {
		for _, target := range []string{"/db/a", "/", "/healthz"} {
			if method == "OPTIONS" && target == "/" { // TestChecksOfHAProxy
				continue
			}
			got := s.do(t, method, target)
			if got.status != 405 || got.header.Get("Allow") != "GET, HEAD" || got.closed {
				t.Errorf("%s %s: %+v", method, target, got)
			}
		}
	}
	body := strings.Repeat("x", 1<<20)
	for name, request := range map[string]string{
		"small":   "POST /db/a HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody",
		"huge":    "POST /db/a HTTP/1.1\r\nHost: x\r\nContent-Length: 1048576\r\n\r\n" + body,
		"chunked": "PUT /db/a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n",
		"never":   "POST /db/a HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n",
		"expect":  "POST /db/a HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n",
		"form":    "POST /db/a HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: 4\r\n\r\nbody",
	} {
		if got := s.raw(t, "POST", request); got.status != 405 || got.header.Get("Allow") != "GET, HEAD" {
			t.Errorf("%s body: %+v", name, got)
		}
	}
	if got := s.raw(t, "CONNECT", "CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n"); got.status != 405 {
		t.Errorf("CONNECT: %+v", got)
	}
	if got := s.raw(t, "OPTIONS", "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n"); got.status != 204 || got.header.Get("Allow") != "GET, HEAD" {
		t.Errorf("OPTIONS *: %+v", got)
	}
}

func TestKeepAlive(t *testing.T) {
	s := start(t, catalogOf(t, map[string]string{"a": "one", "large": strings.Repeat("x", 100<<10)}), testOptions{})
	c := s.dial(t)
	r := bufio.NewReader(c)
	steps := []struct {
		method, target string
		status         int
		length         int64
	}{
		{"HEAD", "/db/a", 200, 3}, {"GET", "/db/a", 200, 3}, {"HEAD", "/db/large", 200, 100 << 10}, {"GET", "/db/large", 200, 100 << 10},
		{"GET", "/db/none", 404, 12}, {"HEAD", "/db/none", 404, 12}, {"GET", "/", 200, -2}, {"HEAD", "/", 200, -2},
		{"DELETE", "/db/a", 405, -2}, {"GET", "/db/a", 200, 3},
	}
	for _, step := range steps {
		fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: x\r\n\r\n", step.method, step.target)
		got := read(t, r, step.method)
		if got.status != step.status || got.closed || (step.length != -2 && got.length != step.length) {
			t.Fatalf("%s %s: %d, %d bytes, closed %v", step.method, step.target, got.status, got.length, got.closed)
		}
	}
}

func TestPipelining(t *testing.T) {
	records := map[string]string{}
	var want []string
	var requests strings.Builder
	for i := range 100 {
		key, value := fmt.Sprintf("key%d", i), fmt.Sprintf("value %d %s", i, strings.Repeat("v", i*200))
		if i%10 == 5 {
			key += strings.Repeat("k", 60<<10)
		}
		if i%25 == 7 {
			value += strings.Repeat("V", 200<<10)
		}
		records[key] = value
		want = append(want, value)
		fmt.Fprintf(&requests, "GET /db/%s HTTP/1.1\r\nHost: x\r\nX-Filler: %s\r\n\r\n", key, strings.Repeat("f", i*13))
	}
	s := start(t, catalogOf(t, records), testOptions{})
	c := s.dial(t)
	go io.WriteString(c, requests.String()) //nolint:errcheck // the reader notices
	r := bufio.NewReader(c)
	for i, value := range want {
		if got := read(t, r, "GET"); got.status != 200 || got.body != value {
			t.Fatalf("answer %d: %d, %d bytes %.30q; want %d bytes", i, got.status, len(got.body), got.body, len(value))
		}
	}
}

func TestConditionalRequests(t *testing.T) {
	large := strings.Repeat("0123456789", 30<<10)
	s := start(t, catalogOf(t, map[string]string{"a": "0123456789", "large": large, "empty": ""}), testOptions{})
	tests := []struct {
		target, header string
		status         int
		body, rng      string
	}{
		{"/db/a", "If-None-Match: " + etagOf("0123456789"), 304, "", ""},
		{"/db/a", "If-None-Match: *", 304, "", ""},
		{"/db/a", "If-Modified-Since: Sat, 31 Jan 2026 10:00:00 GMT", 200, "0123456789", ""}, // may be that of another version
		{"/db/a", `If-None-Match: "x"`, 200, "0123456789", ""},
		{"/db/a", `If-Match: "x"`, 412, "the value is not the one of the request's condition\n", ""},
		{"/db/a", "Range: bytes=2-4", 206, "234", "bytes 2-4/10"},
		{"/db/a", "Range: bytes=-1", 206, "9", "bytes 9-9/10"},
		{"/db/a", "Range: bytes=10-", 416, "invalid range: failed to overlap\n", "bytes */10"},
		{"/db/a", "Range: bytes=0-1,4-5", 200, "0123456789", ""},
		{"/db/empty", "Range: bytes=0-5", 200, "", ""},
		{"/db/a", "If-Modified-Since: Sat, 31 Jan 2026 09:59:59 GMT", 200, "0123456789", ""},
		{"/db/a", "If-Modified-Since: Sat, 31 Jan 2026 10:00:01 GMT", 200, "0123456789", ""}, // of a version with younger files
		{"/db/a", "If-Unmodified-Since: Sat, 31 Jan 2026 09:59:59 GMT", 200, "0123456789", ""},
		{"/db/a", "Range: bytes=0-1\r\nIf-Range: " + etagOf("0123456789"), 206, "01", "bytes 0-1/10"},
		{"/db/a", "Range: bytes=0-1\r\nIf-Range: \"x\"", 200, "0123456789", ""},
		{"/db/a", "Range: bytes=0-1\r\nIf-Range: W/" + etagOf("0123456789"), 200, "0123456789", ""},
		{"/db/a", "Range: bytes=0-1\r\nIf-Range: Sat, 31 Jan 2026 10:00:00 GMT", 200, "0123456789", ""}, // proves nothing about the value
		{"/db/a", "Range: bytes=0-1\r\nRange: bytes=2-3", 200, "0123456789", ""},
		{"/db/large", "If-None-Match: " + etagOf(large), 304, "", ""},
		{"/db/large", "Range: bytes=65530-65549", 206, large[65530:65550], "bytes 65530-65549/307200"},
		{"/db/large", "Range: bytes=-100000", 206, large[len(large)-100000:], "bytes 207200-307199/307200"},
		{"/db/large", "Range: bytes=307200-", 416, "invalid range: failed to overlap\n", "bytes */307200"},
		{"/db/absent", "If-None-Match: *", 404, "no such key\n", ""},
		{"/db/absent", "If-Match: *", 404, "no such key\n", ""},
		{"/db/absent", "Range: bytes=0-1", 404, "no such key\n", ""},
	}
	for _, test := range tests {
		got := s.get(t, test.target, test.header)
		if got.status != test.status || got.body != test.body || got.header.Get("Content-Range") != test.rng {
			t.Errorf("%s, %s: %d %.40q, Content-Range %q", test.target, test.header, got.status, got.body, got.header.Get("Content-Range"))
		}
		if got.header.Get("X-Sequins-Version") != "v1" {
			t.Errorf("%s, %s: no version", test.target, test.header)
		}
		if (got.status == 304 || got.status == 206) && got.header.Get("Etag") == "" || got.status == 206 && got.header.Get("Last-Modified") == "" {
			t.Errorf("%s, %s: validators are missing: %v", test.target, test.header, got.header)
		}
		if _, there := got.header["Content-Length"]; there && got.status == 304 {
			t.Errorf("%s, %s: 304 with Content-Length", test.target, test.header)
		}
	}
}

func TestContentType(t *testing.T) {
	c := catalogOf(t, map[string]string{"a": "<html>"})
	s := start(t, c, testOptions{ContentType: func(db string) string { return "application/" + db }})
	check := func(want string) {
		t.Helper()
		if got := s.get(t, "/db/a").header["Content-Type"]; len(got) != 1 || got[0] != want {
			t.Errorf("Content-Type %q, want %q", got, want)
		}
	}
	check("application/db")
	s.reads.SetContentType(func(string) string { return "" })
	check("application/octet-stream")
	s.reads.SetContentType(func(string) string { return "text/x" })
	check("text/x")
	s.reads.SetContentType(nil)
	check("application/octet-stream")
}

// A range is defined for GET alone.
func TestHeadWithRange(t *testing.T) {
	s := start(t, catalogOf(t, map[string]string{"a": "0123456789"}), testOptions{})
	if got := s.do(t, "HEAD", "/db/a", "Range: bytes=0-1"); got.status != 200 || got.length != 10 {
		t.Errorf("%+v", got)
	}
}
