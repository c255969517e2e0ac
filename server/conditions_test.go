package server

import (
	"bufio"
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

const testETag = `"0123456789abcdef"`

var testModified = time.Date(2026, 1, 31, 10, 0, 0, 0, time.UTC)

// header parses header lines as they would come.
func header(t testing.TB, method string, lines ...string) *fasthttp.RequestHeader {
	t.Helper()
	var h fasthttp.RequestHeader
	text := method + " /db/key HTTP/1.1\r\nHost: x\r\n" + strings.Join(append(lines, "", ""), "\r\n")
	if err := h.Read(bufio.NewReader(strings.NewReader(text))); err != nil {
		t.Fatalf("%q: %v", lines, err)
	}
	return &h
}

func testRepresentation() representation {
	return representation{etag: []byte(testETag), lastModified: testModified, size: 10}
}

func TestConditions(t *testing.T) {
	const (
		same  = "Sat, 31 Jan 2026 10:00:00 GMT"
		later = "Sat, 31 Jan 2026 10:00:01 GMT"
		older = "Sat, 31 Jan 2026 09:59:59 GMT"
	)
	tests := []struct {
		lines  []string
		status int
	}{
		{nil, 200},
		{[]string{"Referer: x", "Accept: */*"}, 200},

		{[]string{"If-None-Match: " + testETag}, 304},
		{[]string{"if-none-match: " + testETag}, 304},
		{[]string{"If-None-Match: W/" + testETag}, 304},
		{[]string{"If-None-Match: *"}, 304},
		{[]string{`If-None-Match: "a", W/"b" , ` + testETag + ` , "c"`}, 304},
		{[]string{`If-None-Match: "a"`, "If-None-Match: " + testETag}, 304},
		{[]string{`If-None-Match: "a"`}, 200},
		{[]string{"If-None-Match: 0123456789abcdef"}, 200},
		{[]string{"If-None-Match: w/" + testETag}, 200},
		{[]string{`If-None-Match: "0123456789abcdef`}, 200},
		{[]string{`If-None-Match: "0123456789ABCDEF"`}, 200},
		{[]string{`If-None-Match: bad, ` + testETag}, 200},
		{[]string{"If-None-Match:"}, 200},

		{[]string{"If-Modified-Since: " + same}, 304},
		{[]string{"If-Modified-Since: Saturday, 31-Jan-26 10:00:00 GMT"}, 304},
		{[]string{"If-Modified-Since: " + older}, 200},
		{[]string{"If-Modified-Since: " + later}, 200}, // of a version with younger files
		{[]string{"If-Modified-Since: yesterday"}, 200},
		{[]string{`If-None-Match: "a"`, "If-Modified-Since: " + same}, 200},
		{[]string{"If-None-Match: " + testETag, "If-Modified-Since: " + older}, 304},

		{[]string{"If-Match: " + testETag}, 200},
		{[]string{"If-Match: *"}, 200},
		{[]string{`If-Match: "a",` + testETag}, 200},
		{[]string{`If-Match: "a"`}, 412},
		{[]string{"If-Match: W/" + testETag}, 412},
		{[]string{"If-Match: " + testETag, "If-None-Match: " + testETag}, 304},
		{[]string{`If-Match: "a"`, "If-None-Match: " + testETag}, 412},

		{[]string{"If-Unmodified-Since: " + same}, 200},
		{[]string{"If-Unmodified-Since: " + later}, 200},
		{[]string{"If-Unmodified-Since: " + older}, 412},
		{[]string{"If-Unmodified-Since: never"}, 200},
		{[]string{"If-Match: " + testETag, "If-Unmodified-Since: " + older}, 200},

		{[]string{"Range: bytes=0-4", "If-Range: " + testETag}, 206},
		{[]string{"Range: bytes=0-4", `If-Range: "a"`}, 200},
		{[]string{"Range: bytes=0-4", "If-Range: W/" + testETag}, 200},
		{[]string{"Range: bytes=0-4", "If-Range: " + same}, 200}, // proves nothing about the value
		{[]string{"If-Range: " + testETag}, 200},
		{[]string{"Range: bytes=20-", `If-Range: "a"`}, 200},
		{[]string{"Range: bytes=0-4", "If-None-Match: " + testETag}, 304},
		{[]string{"Range: bytes=20-", "If-None-Match: " + testETag}, 304},
		{[]string{"Range: bytes=0-4", `If-Match: "a"`}, 412},
	}
	for _, test := range tests {
		if got := choose(header(t, "GET", test.lines...), testRepresentation()); got.status != test.status {
			t.Errorf("%q: %d, want %d", test.lines, got.status, test.status)
		}
	}
}

func TestConditionsWithoutLastModified(t *testing.T) {
	rep := testRepresentation()
	rep.lastModified = time.Time{}
	for _, line := range []string{"If-Modified-Since: Mon, 01 Jan 0001 00:00:00 GMT", "If-Unmodified-Since: Mon, 01 Jan 0001 00:00:00 GMT"} {
		if got := choose(header(t, "GET", line), rep); got.status != 200 {
			t.Errorf("%s: %d, want 200", line, got.status)
		}
	}
}

func TestRanges(t *testing.T) {
	tests := []struct {
		value      string
		status     int
		start, end int64
	}{
		{"bytes=0-4", 206, 0, 5},
		{"BYTES=0-4", 206, 0, 5},
		{"bytes=0-0", 206, 0, 1},
		{"bytes=9-9", 206, 9, 10},
		{"bytes=5-", 206, 5, 10},
		{"bytes=-3", 206, 7, 10},
		{"bytes=-10", 206, 0, 10},
		{"bytes=-11", 206, 0, 10},
		{"bytes=0-99", 206, 0, 10},
		{"bytes=0-9223372036854775807", 206, 0, 10},
		{"bytes=0-99999999999999999999999", 206, 0, 10},
		{"bytes=-99999999999999999999999", 206, 0, 10},
		{"bytes= 2 - 3 ", 206, 2, 4},
		{"bytes=2-3,", 206, 2, 4},
		{"bytes=, ,2-3", 206, 2, 4},

		{"bytes=10-", 416, 0, 0},
		{"bytes=10-12", 416, 0, 0},
		{"bytes=99999999999999999999999-", 416, 0, 0},
		{"bytes=9223372036854775807-9223372036854775807", 416, 0, 0},
		{"bytes=-0", 416, 0, 0},

		{"bytes=0-1,3-4", 200, 0, 10}, // several: the whole, as is allowed
		{"bytes=0-1,99-", 200, 0, 10},
		{"bytes=4-2", 200, 0, 10},
		{"bytes=", 200, 0, 10},
		{"bytes=-", 200, 0, 10},
		{"bytes=1", 200, 0, 10},
		{"bytes=a-b", 200, 0, 10},
		{"bytes=0x1-2", 200, 0, 10},
		{"bytes=--5", 200, 0, 10},
		{"bytes=+1-2", 200, 0, 10},
		{"bytes=1-2-3", 200, 0, 10},
		{"items=0-4", 200, 0, 10},
		{"bytes", 200, 0, 10},
		{"", 200, 0, 10},
	}
	for _, test := range tests {
		got := choose(header(t, "GET", "Range: "+test.value), testRepresentation())
		if got != (selection{test.status, test.start, test.end}) {
			t.Errorf("Range: %s: %+v, want %d %d-%d", test.value, got, test.status, test.start, test.end)
		}
	}
	if got := choose(header(t, "HEAD", "Range: bytes=0-4"), testRepresentation()); got.status != 200 {
		t.Errorf("HEAD with a range: %d, want 200", got.status)
	}
	if got := choose(header(t, "GET", "Range: bytes=0-1", "Range: bytes=2-3"), testRepresentation()); got.status != 200 {
		t.Errorf("two Range headers: %d, want 200", got.status)
	}
	empty := testRepresentation()
	empty.size = 0
	for _, r := range []string{"bytes=0-", "bytes=-5", "bytes=3-4"} {
		if got := choose(header(t, "GET", "Range: "+r), empty); got.status != 200 {
			t.Errorf("Range: %s of nothing: %d, want 200", r, got.status)
		}
	}
}

// The standard library's file server is the reference, where it does the same.
// It differs on purpose in four things, which TestConditions and TestRanges
// have: dates later than Last-Modified, dates in If-Range, several ranges (it
// sends multipart) and malformed ones (it sends 416).
func TestConditionsAgainstServeContent(t *testing.T) {
	etags := []string{"", "*", testETag, "W/" + testETag, `"a"`, `"a", ` + testETag, `"unclosed`, `,,"a",W/"b"`}
	dates := []string{"", testModified.Format(http.TimeFormat), testModified.Add(-time.Hour).Format(http.TimeFormat), "nonsense"}
	ranges := []string{"", "bytes=0-4", "bytes=3-", "bytes=-3", "bytes=-99", "bytes=0-99", "bytes=10-", "bytes=99-100", "bytes=9-9"}
	content := "0123456789"
	n := 0
	for _, match := range etags {
		for _, noneMatch := range etags {
			for _, modifiedSince := range dates {
				for _, unmodifiedSince := range dates {
					for _, rng := range ranges {
						for _, ifRange := range []string{"", testETag, "W/" + testETag, `"a"`} {
							var lines []string
							for name, v := range map[string]string{"If-Match": match, "If-None-Match": noneMatch, "If-Modified-Since": modifiedSince,
								"If-Unmodified-Since": unmodifiedSince, "Range": rng, "If-Range": ifRange} {
								if v != "" {
									lines = append(lines, name+": "+v)
								}
							}
							compareWithServeContent(t, lines, content)
							n++
						}
					}
				}
			}
		}
	}
	t.Logf("%d requests", n)
}

func compareWithServeContent(t *testing.T, lines []string, content string) {
	t.Helper()
	req := httptest.NewRequest("GET", "/", nil)
	for _, l := range lines {
		name, value, _ := strings.Cut(l, ": ")
		req.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	w.Header().Set("Etag", testETag)
	http.ServeContent(w, req, "", testModified, strings.NewReader(content))

	got := choose(header(t, "GET", lines...), testRepresentation())
	if got.status != w.Code {
		t.Fatalf("%q: %d, the reference says %d", lines, got.status, w.Code)
	}
	if !got.hasBody() {
		return
	}
	if body := content[got.start:got.end]; body != w.Body.String() {
		t.Fatalf("%q: %q, the reference says %q", lines, body, w.Body)
	}
	if want := w.Header().Get("Content-Range"); want != "" && string(contentRange(got, 10)) != want {
		t.Fatalf("%q: %s, the reference says %s", lines, contentRange(got, 10), want)
	}
}

// Any Range header selects a part of the value, or all, or nothing.
func FuzzByteRange(f *testing.F) {
	for _, s := range []string{"bytes=0-4", "bytes=-3", "bytes=5-", "bytes=1-2,3-4", "bytes=99999999999999999999-"} {
		f.Add([]byte(s), int64(10))
	}
	f.Fuzz(func(t *testing.T, value []byte, size int64) {
		if size < 0 {
			size = -(size + 1)
		}
		got := byteRange(value, size)
		switch got.status {
		case 200:
			if got.start != 0 || got.end != size {
				t.Fatalf("%q of %d: whole is %+v", value, size, got)
			}
		case 206:
			if got.start < 0 || got.start >= got.end || got.end > size {
				t.Fatalf("%q of %d: %+v", value, size, got)
			}
		case 416:
			if size == 0 {
				t.Fatalf("%q of nothing: 416", value)
			}
		default:
			t.Fatalf("%q of %d: %+v", value, size, got)
		}
	})
}

func TestHasConditions(t *testing.T) {
	tests := map[string]bool{
		"":                                    false,
		"Host: x\r\n\r\n":                     false,
		"Host: If-Match\r\nAccept: Range\r\n": false,
		"Host: x\r\nIf-Match: a\r\n":          true,
		"Host: x\nrange: a\n":                 true,
		"IF-NONE-MATCH: a\r\n":                true,
		"Host: x":                             false,
	}
	for raw, want := range tests {
		if got := hasConditions([]byte(raw)); got != want {
			t.Errorf("%q: %v", raw, got)
		}
	}
}

func TestTag(t *testing.T) {
	var r request
	for _, h := range []uint64{0, 1, 0x0123456789abcdef, 1<<64 - 1} {
		if got, want := r.tag(h), fmt.Sprintf(`"%016x"`, h); !bytes.Equal(got, []byte(want)) {
			t.Errorf("tag(%d) = %s, want %s", h, got, want)
		}
	}
}
