package server

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sequins/version"
)

// The example of an ordered read in docs/API.md is what a node answers, and its table has all parameters of clients.
func TestScanDocument(t *testing.T) {
	text, err := os.ReadFile("../docs/API.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Ranges of keys\n")
	section, _, _ = strings.Cut(section, "\n## ")
	set := version.NewSet("users")
	activate(t, set, versionOf(t, "users", "2026-01-31", 2, map[string]string{"de:anna": "1", "de:bernd": "2", "de:clara": "3", "fr:anne": "4"}))
	s := start(t, &catalog{sets: map[string]*version.Set{"users": set}}, testOptions{})
	examples := regexp.MustCompile(`(?m)^    \$ curl 'localhost:9599([^']*)'\n((?:    .*\n)+)`).FindAllStringSubmatch(section, -1)
	if len(examples) == 0 {
		t.Fatal("no example")
	}
	for _, e := range examples {
		want := strings.ReplaceAll(e[2], "    ", "")
		if got := s.get(t, e[1]); got.status != 200 || got.body != want {
			t.Errorf("%s: %d\n%swant\n%s", e[1], got.status, got.body, want)
		}
	}
	var documented []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)(?:=[A-Z]+)?` \\|").FindAllStringSubmatch(section, -1) {
		documented = append(documented, row[1])
	}
	if want := scanParameters[:scanProxy]; !slices.Equal(documented, want) {
		t.Errorf("documented are %q, and there are %q", documented, want)
	}
}
