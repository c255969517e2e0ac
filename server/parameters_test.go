package server

import (
	"strings"
	"testing"

	"sequins/observe/status"
)

// A mistyped parameter of a read does not get the status of the db.
func TestUnknownParametersOfADatabase(t *testing.T) {
	c := catalogOf(t, map[string]string{"a": "1"})
	c.state = status.Status{DBs: map[string]status.DB{"db": {}}}
	s := start(t, c, testOptions{})
	for target, want := range map[string]string{
		"/db?prefx=k":              `unknown parameter "prefx": a read of a database has one of key, prefix, `,
		"/db/?Limit=1":             `unknown parameter "Limit": a read`,
		"/db?partition":            `unknown parameter "partition": a read`,
		"/db?zzzzzz=%zz&b":         `unknown parameter "zzzzzz": a read of a database`,
		"/db?&=x":                  `unknown parameter "": a read`,
		"/db?%0a=x":                `unknown parameter "\n": `,
		"/db?list":                 `unknown parameter "list": a read`,
		"/db?explain":              `unknown parameter "explain": a read`,
		"http://elsewhere/db?keyy": `unknown parameter "keyy": a read`,
	} {
		for _, accept := range []string{"Accept: */*", "Accept: text/html"} {
			got := s.get(t, target, accept)
			if got.status != 400 || !strings.HasPrefix(got.body, want) || strings.Count(got.body, "\n") != 1 || got.header.Get("Cache-Control") != "no-store" {
				t.Errorf("%s: %d %s", target, got.status, got.body)
			}
		}
	}
	for target, want := range map[string]int{
		"/db": 200, "/db?": 200, "/db/?&&": 200, "/db?proxy=status": 200, "/db?proxy=": 200, "/db?proxy=v1&new=1": 200, "/?x": 200, "/db/a?prefx=k": 200,
		"/healthz?x": 404, "/livez?x": 200, "/other?v=2": 404, "/db/absent?x": 404, "/db?key=a&x": 200, "/db?partitions&x": 200,
	} {
		if got := s.get(t, target); got.status != want {
			t.Errorf("%s: %d %s", target, got.status, got.body)
		}
	}
}

// Whoever may read a db gets the mistake, not that the status is not for this token.
func TestUnknownParametersNeedTheRightToRead(t *testing.T) {
	s, _ := guarded(t, testOptions{})
	for token, want := range map[string]int{webToken: 400, otherToken: 403, "": 401} {
		if got := s.get(t, "/db?prefx=k", token); got.status != want {
			t.Errorf("%q: %d %s", token, got.status, got.body)
		}
	}
}
