package server

import (
	"fmt"
	"net/http"
	"testing"

	"sequins/test/contents"
	"sequins/test/versions"
	"sequins/version"
)

// A client that names versions in the header of its request gets the same answers from both front ends.
func TestSessions(t *testing.T) {
	set := version.NewSet("db")
	versions.Activate(t, set, versionOf(t, "db", "v1", 1, map[string]string{"k": "one"}))
	versions.Activate(t, set, versionOf(t, "db", "v2", 1, map[string]string{"k": "two"}))
	set.Version(contents.In("v1")).Retire()
	s := start(t, &catalog{sets: map[string]*version.Set{"db": set}}, testOptions{})
	const atLeast, exact = "X-Sequins-At-Least: ", "x-sequins-version: "
	for _, test := range []struct {
		headers []string
		status  int
		body    string
	}{
		{[]string{atLeast + "v1"}, 200, "two"},
		{[]string{atLeast + "v2"}, 200, "two"},
		{[]string{atLeast + "v2.1"}, 503, "this node does not serve the version of X-Sequins-At-Least, or of the cursor, yet\n"},
		{[]string{exact + "v1"}, 200, "one"},
		{[]string{exact + "v2"}, 200, "two"},
		{[]string{exact + "v2", atLeast + "v2"}, 200, "two"},
		{[]string{exact + "v3"}, 412, "the version of X-Sequins-Version cannot be read on this node\n"},
		{[]string{atLeast + "v1", atLeast + "v3"}, 400, "X-Sequins-At-Least and X-Sequins-Version must not be repeated\n"},
		{[]string{exact + "v1", exact + "v2"}, 400, "X-Sequins-At-Least and X-Sequins-Version must not be repeated\n"},
	} {
		for _, general := range []string{"X: y", "Connection: close"} { // the second is not plain
			got := s.get(t, "/db/k", append(test.headers, general)...)
			if got.status != test.status || got.body != test.body || (got.status == http.StatusServiceUnavailable) != (got.header.Get("Retry-After") != "") {
				t.Errorf("%v, %s: %d %q %v; want %d %q", test.headers, general, got.status, got.body, got.header, test.status, test.body)
			}
			if want := test.body[:min(3, len(test.body))]; got.status == 200 && got.header.Get("X-Sequins-Version") != map[string]string{"one": "v1", "two": "v2"}[want] {
				t.Errorf("%v: version %s", test.headers, fmt.Sprint(got.header))
			}
		}
	}
}
