package negotiate_test

import (
	"slices"
	"strings"
	"testing"

	"sequins/server/internal/negotiate"
)

const (
	text   = "text/plain"
	html   = "text/html"
	json   = "application/json"
	ndjson = "application/x-ndjson"
	binary = "application/octet-stream"
	chrome = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8,application/signed-exchange;v=b3;q=0.7"
	axios  = "application/json, text/plain, */*"
)

func TestMedia(t *testing.T) {
	tests := []struct {
		accept, byDefault string
		others            []string
		want              string
	}{
		{"", json, []string{html}, json},
		{"*/*", json, []string{html}, json},
		{chrome, json, []string{html}, html},
		{axios, json, []string{html}, json},
		{"TEXT/HTML", json, []string{html}, html},
		{"text/*", json, []string{html}, html},
		{"text/html, */*", json, []string{html}, html},
		{"text/html, application/json", json, []string{html}, html},
		{"application/json, text/html;q=0.5", json, []string{html}, json},
		{"application/json;q=0.5, text/html;q=0.6", json, []string{html}, html},
		{"text/html;q=0.5, */*;q=0.8", json, []string{html}, json},
		{"text/html;q=0, */*", json, []string{html}, json},
		{"text/html;q=0", json, []string{html}, json},
		{"text/html; q=0.000", json, []string{html}, json},
		{"image/png", json, []string{html}, json},
		{`text/html;level="1,2;q=0"`, json, []string{html}, html},
		{"text/html;charset=utf-8", json, []string{html}, html},
		{"text/html;q=x, application/json;q=0.1", json, []string{html}, json},
		{"text/html;q=2", json, []string{html}, json},
		{"text/html;Q=0.2,text/html;q=0.1,application/json;q=0.15", json, []string{html}, html},
		{", ,;q=1, text/html", json, []string{html}, html},
		{"text/*;q=0.3, text/html;q=0, application/json;q=0.1", json, []string{html}, json},

		{"application/octet-stream, application/x-ndjson", json, []string{binary, ndjson}, binary},
		{"application/x-ndjson", json, []string{binary, ndjson}, ndjson},
		{"application/octet-stream;q=0.5, application/x-ndjson", json, []string{binary, ndjson}, ndjson},
		{"application/*", json, []string{binary, ndjson}, json},
		{"application/json", ndjson, []string{binary}, ndjson},

		{axios, text, []string{"application/problem+json", json}, json},
		{"application/problem+json, application/json", text, []string{"application/problem+json", json}, "application/problem+json"},
		{"application/json, */*", text, []string{"application/problem+json", json}, json},
		{"application/json, text/plain;q=0.9", text, []string{"application/problem+json", json}, json},
		{"text/plain, application/json;q=0.9", text, []string{"application/problem+json", json}, text},
		{"*/*", text, []string{"application/problem+json", json}, text},
		{chrome, text, []string{"application/problem+json", json}, text},
		{binary, text, []string{"application/problem+json", json}, text},
	}
	for _, test := range tests {
		if got := negotiate.Media(test.accept, test.byDefault, test.others...); got != test.want {
			t.Errorf("Media(%q, %s, %v) = %s, want %s", test.accept, test.byDefault, test.others, got, test.want)
		}
	}
}

func TestCoding(t *testing.T) {
	tests := []struct {
		accepts, want string
	}{
		{"", ""},
		{"gzip", "gzip"},
		{"GZIP", "gzip"},
		{"x-gzip", "gzip"},
		{"gzip, deflate, br, zstd", "zstd"},
		{"gzip, deflate, br", "gzip"},
		{"gzip;q=1.0, zstd;q=0.9", "gzip"},
		{"gzip;q=0.5, zstd;q=0.5", "zstd"},
		{"gzip;q=0.001", "gzip"},
		{"gzip;q=0", ""},
		{"gzip;q=0, *", "zstd"},
		{"*", "zstd"},
		{"*;q=0", ""},
		{"*;q=0, gzip", "gzip"},
		{"identity", ""},
		{"identity;q=0", ""},
		{"identity;q=0, gzip;q=0.1", "gzip"},
		{"identity;q=0, *", "zstd"},
		{"identity, *;q=0", ""},
		{"gzip;q=0.5, identity", ""},
		{"gzip;q=0.5, identity;q=0.5", "gzip"},
		{"gzip;q=0.5, *;q=0.8", "zstd"},
		{"gzip;q=0.5, zstd;q=0.5, *;q=0.8", ""},
		{"br;q=1, gzip;q=0.8", "gzip"},
		{"deflate", ""},
		{"gzip;q=abc", ""},
		{"gzip;q=", ""},
		{"gzip; q = 0.5", "gzip"},
		{" , gzip , ", "gzip"},
		{"gzipp", ""},
	}
	for _, test := range tests {
		if got := negotiate.Coding(test.accepts, "zstd", "gzip"); got != test.want {
			t.Errorf("Coding(%q) = %q, want %q", test.accepts, got, test.want)
		}
	}
	if got := negotiate.Coding("*;q=0, gzip"); got != "" {
		t.Errorf("nothing is offered, and the answer is %q", got)
	}
}

func FuzzNegotiate(f *testing.F) {
	for _, s := range []string{chrome, axios, "gzip, zstd;q=0.5, *;q=0", `a/b;c="\"";q=0.5,`, "*/*;q=0.1", ";q=0,\t", "identity;q=0", "\"", "gzip;q=1.0001"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if got := negotiate.Media(s, json, html, ndjson); got != json && got != html && got != ndjson {
			t.Errorf("Media(%q) = %q", s, got)
		}
		if got := negotiate.Media("application/json;q=0.1,"+s, text, json); got == text && !mentions(s, text, "text/*", "*/*", json) && !strings.Contains(s, `"`) {
			t.Errorf("Media(%q) = %q, and it names only JSON", s, got)
		}
		coding := negotiate.Coding(s, "zstd", "gzip")
		if !slices.Contains([]string{"", "zstd", "gzip"}, coding) {
			t.Errorf("Coding(%q) = %q", s, coding)
		}
		if coding != "" && !mentions(s, coding, "*") {
			t.Errorf("Coding(%q) = %q, which it does not name", s, coding)
		}
	})
}

// mentions reports whether s contains one of some texts, in any letter case.
func mentions(s string, texts ...string) bool {
	return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(strings.ToLower(s), text) })
}
