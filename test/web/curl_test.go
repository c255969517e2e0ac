//go:build integration

package web

import (
	"bytes"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"sequins/test/process"
)

// curl returns the header and the body that curl has of a target of a node.
func curl(t *testing.T, n *process.Node, target string, args ...string) (http.Header, string) {
	t.Helper()
	var out, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "curl", append([]string{"-sS", "-i", "--max-time", "60", "http://" + n.Addr + target}, args...)...)
	cmd.Stdout, cmd.Stderr = &out, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("curl %s %q: %v: %s", target, args, err, &stderr)
	}
	head, body, _ := strings.Cut(out.String(), "\r\n\r\n")
	h := http.Header{}
	for _, line := range strings.Split(head, "\r\n") {
		name, value, _ := strings.Cut(line, ": ")
		h.Add(name, value)
	}
	return h, body
}

// What curl does not ask for it does not get, whatever is configured; what it asks for it can read.
func TestCurl(t *testing.T) {
	t.Parallel()
	n := start(t, compressing+"allowed_origins = [\"https://app.example\"]\n")
	value := strings.Repeat("x", largeSize)
	for _, test := range []struct {
		args         []string
		coding, body string
	}{
		{nil, "", value},
		{[]string{"--compressed"}, "gzip", value}, // or zstd, where curl has it
		{[]string{"--http1.0"}, "", value},
		{[]string{"--http1.0", "--compressed"}, "gzip", value},
		{[]string{"-r", "10-19"}, "", value[10:20]},
		{[]string{"--compressed", "-r", "10-19"}, "", value[10:20]},
		{[]string{"-I"}, "", ""},
		{[]string{"-I", "--compressed"}, "gzip", ""},
	} {
		h, body := curl(t, n, "/words/large", test.args...)
		coding := h.Get("Content-Encoding")
		if coding == "zstd" {
			coding = "gzip"
		}
		if body != test.body || coding != test.coding || h.Get("X-Content-Type-Options") != "nosniff" || h["Access-Control-Allow-Origin"] != nil {
			t.Errorf("%q: %d bytes, %v", test.args, len(body), h)
		}
	}
	h, body := curl(t, n, "/words/absent")
	if body != "no such key\n" || h.Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Errorf("%q, %v", body, h)
	}
	h, body = curl(t, n, "/words/absent", "-H", "Accept: application/problem+json")
	if body != `{"type":"about:blank","title":"Not Found","status":404,"detail":"no such key"}`+"\n" || h.Get("Content-Type") != "application/problem+json" {
		t.Errorf("%q, %v", body, h)
	}
	h, _ = curl(t, n, "/words/small", "-H", "Origin: https://app.example")
	if h.Get("Access-Control-Allow-Origin") != "https://app.example" {
		t.Errorf("%v", h)
	}
}
