package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Shells evaluate what they complete: of what a node sends, only names are offered.
func TestCompletionOffersNames(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"node": "node1.example.com:9599", "dbs": {
			"words": {"versions": {"dt=2026-01-31": {}, "$(touch pwned)": {}, "a b": {}, "-x": {}}},
			"$(touch pwned)a": {}, "$(touch pwned)b": {}, "a;b": {}, "` + "`x`" + `": {}},
			"peers": {"$(touch pwned)a:1": {}, "[::1]:9599": {}, "a b:1": {}, "10.0.0.1:9599": {}}}`))
	}))
	defer s.Close()
	conf := filepath.Join(t.TempDir(), "sequins.conf")
	if err := os.WriteFile(conf, []byte("source = \"/srv\"\nbind = \""+strings.TrimPrefix(s.URL, "http://")+"\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"scan", s.URL, ""}, "words"},
		{[]string{"diff", "--server", s.URL, "words", ""}, "dt=2026-01-31"},
		{[]string{"scan", "--config", conf, ""}, "words"},
	} {
		var out, said bytes.Buffer
		if code := run(append([]string{"__complete"}, test.args...), &out, &said); code != 0 {
			t.Fatalf("%q: %d, %s", test.args, code, &said)
		}
		offered, _, _ := strings.Cut(out.String(), "\n:")
		if offered != test.want {
			t.Errorf("%q: %q, want %q", test.args, offered, test.want)
		}
	}
}
