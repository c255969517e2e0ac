package config

import (
	"strings"
	"testing"
)

// Origins as browsers send them, and directives as caches know them, are accepted as they are.
func TestHTTP(t *testing.T) {
	doc := "source = \"/d\"\n[http]\nallowed_origins = [\"https://app.example.com\", \"http://localhost:3000\", \"http://127.0.0.1\", \"http://[::1]:8080\", " +
		"\"https://xn--bcher-kva.example\", \"chrome-extension://abcdefghijklmnop\"]\ncache_control = \"public, max-age=60, s-maxage=600,stale-while-revalidate=5, immutable\"\n" +
		"compression = [\"gzip\", \"zstd\"]\n[db.x]\ncache_control = \"\"\n"
	c, warnings, err := load(doc)
	if err != nil || len(warnings) > 0 || len(c.HTTP.AllowedOrigins) != 6 {
		t.Errorf("%v, %v, %v", c.HTTP, warnings, err)
	}
	if x, y := c.ForDB("x"), c.ForDB("y"); x.CacheControl != "" || y.CacheControl != c.HTTP.CacheControl {
		t.Errorf("x: %+v, others: %+v", x, y)
	}
	_, warnings, err = load("source = \"/d\"\n[http]\nallowed_origins = [\"*\", \"http://a\"]\n")
	if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0].Error(), "the others have no effect") {
		t.Errorf("%v, %v", warnings, err)
	}
}
