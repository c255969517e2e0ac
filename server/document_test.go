package server

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sequins/test/expect"
	"sequins/test/versions"
	"sequins/version"
)

// The example of an ordered read in docs/API.md is what a node answers, and its table has all parameters of clients.
func TestScanDocument(t *testing.T) {
	text, err := os.ReadFile("../docs/API.md")
	expect.NoError(t, err)
	_, section, _ := strings.Cut(string(text), "\n## Ranges of keys\n")
	section, _, _ = strings.Cut(section, "\n## ")
	set := version.NewSet("users")
	versions.Activate(t, set, versionOf(t, "users", "2026-01-31", 2, map[string]string{"de:anna": "1", "de:bernd": "2", "de:clara": "3", "fr:anne": "4"}))
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
	if want := scanParameters[:len(scanParameters)-1]; !slices.Equal(documented, want) {
		t.Errorf("documented are %q, and there are %q", documented, want)
	}
}

// The table of docs/API.md has every status of the description of the interface.
func TestStatusDocument(t *testing.T) {
	page, err := os.ReadFile("../docs/API.md")
	expect.NoError(t, err)
	description, err := os.ReadFile("../docs/openapi.yaml")
	expect.NoError(t, err)
	_, table, _ := strings.Cut(string(page), "\n## Errors\n")
	table, _, _ = strings.Cut(table, "\n## ")
	documented := map[string]bool{}
	for _, row := range regexp.MustCompile(`(?m)^\| ([0-9, ]+) \|`).FindAllStringSubmatch(table, -1) {
		for code := range strings.SplitSeq(row[1], ", ") {
			documented[code] = true
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^ +"([0-9]{3})":`).FindAllStringSubmatch(string(description), -1) {
		if !documented[m[1]] {
			t.Errorf("%s is not in the table of docs/API.md", m[1])
		}
	}
	if len(documented) < 15 {
		t.Errorf("the table has only %d statuses", len(documented))
	}
}
