package server

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// ranged is how a Range field is answered for a value of ten bytes.
func ranged(field, value string) (status int, body string) {
	match := regexp.MustCompile(`^bytes=([0-9]{0,18})-([0-9]{0,18})$`).FindStringSubmatch(field)
	if match == nil || match[1] == "" && strings.Trim(match[2], "0") == "" {
		return 200, value
	}
	first, noFirst := strconv.Atoi(match[1])
	last, noLast := strconv.Atoi(match[2])
	switch {
	case noFirst != nil:
		return 206, value[max(0, len(value)-last):]
	case noLast == nil && last < first, first >= len(value):
		return 416, ""
	case noLast != nil || last >= len(value):
		return 206, value[first:]
	}
	return 206, value[first : last+1]
}

// Malformed ranges, those of another unit and several ranges are ignored; a range after the end, or that ends before it begins, is 416.
func TestRanges(t *testing.T) {
	const value = "0123456789"
	s := start(t, catalogOf(t, map[string]string{"k": value, "empty": ""}), testOptions{})
	c := s.dial(t)
	r := bufio.NewReader(c)
	parts := []string{"bytes", "Bytes", "items", "=", "=", "-", "-", ",", " ", "\t", "0", "1", "5", "9", "10", "11", "007", "18446744073709551616", "x", "+1"}
	fields := []string{"bytes=-0", "bytes=0-", "bytes=5-2", "bytes=-", "bytes", "items=0-1", "BYTES=1-2", "bytes=18446744073709551616-", "bytes=1-18446744073709551616", "bytes=-18446744073709551616", "bytes=0-0"}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		field := ""
		if rng.IntN(4) > 0 {
			field = "bytes="
		}
		for range rng.IntN(6) {
			field += parts[rng.IntN(len(parts))]
		}
		fields = append(fields, field)
	}
	for _, field := range fields {
		if field = strings.Trim(field, " \t"); strings.Contains(field, ",") {
			continue // of several ranges the whole value is sent: see TestConditionalRequests
		}
		fmt.Fprintf(c, "GET /db/k HTTP/1.1\r\nHost: x\r\nRange: %s\r\n\r\n", field)
		got := read(t, r, "GET")
		status, body := ranged(field, value)
		if field == "" {
			status, body = 200, value
		}
		if got.status != status || status != 416 && got.body != body {
			t.Errorf("%q: %d %q, want %d %q", field, got.status, got.body, status, body)
		}
		want := "" // of a range that ends before it begins
		if first, _, _ := strings.Cut(strings.TrimPrefix(field, "bytes="), "-"); status == 416 && len(strings.TrimLeft(first, "0")) > 1 {
			want = "bytes */10"
		}
		if status == 416 && got.header.Get("Content-Range") != want {
			t.Errorf("%q: Content-Range %q", field, got.header.Get("Content-Range"))
		}
		w, req := httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)
		req.Header.Set("Range", field)
		http.ServeContent(w, req, "", time.Time{}, bytes.NewReader([]byte(value)))
		if w.Code == 206 && got.status == 206 && (w.Body.String() != got.body || w.Header().Get("Content-Range") != got.header.Get("Content-Range")) {
			t.Errorf("%q: %+v; net/http sends %q as %q", field, got, w.Body, w.Header().Get("Content-Range"))
		}
	}
	for _, field := range []string{"bytes=-5", "bytes=0-", "bytes=-0"} {
		if got := s.get(t, "/db/empty", "Range: "+field); got.status != 200 || got.body != "" {
			t.Errorf("%q of an empty value: %+v", field, got)
		}
	}
	tag := etagOf(value)
	for _, fields := range [][]string{{`If-Range: "x"`}, {"If-Range: W/" + tag}, {"If-Range: " + tag, `If-Range: "x"`}, {"If-Range: Sat, 31 Jan 2026 10:00:00 GMT"}, {"If-Range: "}, {"If-Range: x"}} {
		for _, field := range []string{"bytes=1-2", "bytes=50-", "bytes=x"} {
			if got := s.get(t, "/db/k", append(fields, "Range: "+field)...); got.status != 200 || got.body != value {
				t.Errorf("%q, %q: %+v", fields, field, got)
			}
		}
	}
	if got := s.get(t, "/db/k", "If-Range: "+tag, "Range: bytes=1-2"); got.status != 206 || got.body != "12" {
		t.Errorf("of the very value: %+v", got)
	}
}
