//go:build integration

package manual

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"sequins/test/expect"
	"sequins/test/process"
)

// answers are requests with the status that a node answers them with, and the route that they are counted by.
var answers = []struct {
	method, target, header string
	code                   int
	route                  string
}{
	{"GET", "/words/apple", "", 200, "key"},
	{"HEAD", "/words/apple", "", 200, "key"},
	{"GET", "/words/apple", "Range: bytes=0-3\r\n", 206, "key"},
	{"GET", "/words/apple", "If-None-Match: *\r\n", 304, "key"},
	{"GET", "/words/no-such-key", "", 404, "key"},
	{"GET", "/no-such-db/apple", "", 404, "key"},
	{"GET", "/words/apple", "If-Match: \"other\"\r\n", 412, "key"},
	{"GET", "/words/apple", "Range: bytes=1000-\r\n", 416, "key"},
	{"GET", "/words/apple?proxy=2026-01-31", "", 200, "peer"},
	{"GET", "/words/apple?proxy=other", "", 501, "peer"},
	{"GET", "/words/apple?explain", "", 200, "status"},
	{"GET", "/", "", 200, "status"},
	{"GET", "/words", "", 200, "status"},
	{"GET", "/livez", "", 200, "health"},
	{"GET", "/words/%zz", "", 400, "invalid"},
	{"POST", "/words/apple", "Content-Length: 0\r\n", 405, "invalid"},
	{"GET", "/words/" + strings.Repeat("k", 65537), "", 414, "invalid"},
	{"GET", "/words/apple", "X: " + strings.Repeat("x", 40<<10) + "\r\n", 431, "invalid"},
}

// A node answers as API.md lists it, and counts as RUNBOOK.md does.
func TestAnswers(t *testing.T) {
	t.Parallel()
	n := process.Serve(t, process.Config{Source: filepath.Join(process.Root(), "docs", "example"), Store: filepath.Join(t.TempDir(), "store")}, "words", "2026-01-31")
	statuses, metrics := page(t, "API.md"), page(t, "RUNBOOK.md")
	for _, a := range answers {
		c := n.Client()
		r, err := c.Do(a.method, a.target, a.header)
		c.Close()
		if err != nil || r.Code != a.code {
			t.Errorf("%s %.40s %.20s: %+v, %v; want %d", a.method, a.target, a.header, r, err, a.code)
			continue
		}
		if !regexp.MustCompile(fmt.Sprintf(`(?m)^\| %d\b`, a.code)).MatchString(statuses) {
			t.Errorf("API.md does not list %d", a.code)
		}
		if !strings.Contains(metrics, "\n| `"+a.route+"` | ") {
			t.Errorf("RUNBOOK.md does not list the route %s", a.route)
		}
		counted := regexp.MustCompile(fmt.Sprintf(`sequins_requests_total\{code="%d",db="[a-z]*",route="%s"\}`, a.code, a.route))
		n.WaitFor(t, counted.String(), func() bool { return counted.MatchString(n.Metrics(t)) })
	}
}

// A request beyond max_connections gets 503, which is counted by the route invalid and not by key.
func TestTooManyConnections(t *testing.T) {
	t.Parallel()
	n := process.Start(t, process.Config{Source: filepath.Join(process.Root(), "docs", "example"), Store: filepath.Join(t.TempDir(), "store"),
		Extra: "max_connections = 1\n"})
	n.WaitCurrent(t, "words", "2026-01-31")
	one, other := n.Client(), n.Client()
	defer one.Close()
	defer other.Close()
	n.WaitFor(t, "one connection is open", func() bool {
		r, err := one.Get("/words/apple")
		return err == nil && r.Code == 200
	})
	if r, err := other.Get("/words/apple"); err != nil || r.Code != 503 || r.Header.Get("Retry-After") == "" {
		t.Errorf("beside another connection: %+v, %v", r, err)
	}
	metrics := n.Metrics(t)
	if !strings.Contains(metrics, `sequins_requests_total{code="503",db="",route="invalid"} `) || regexp.MustCompile(`code="503",db="[a-z]*",route="key"`).MatchString(metrics) {
		t.Errorf("503 is not counted by the route invalid alone:\n%s", metrics)
	}
}

var attribute = regexp.MustCompile(`(\w+)=`)

// The lines of the log that OPERATING.md shows for a version, and for one that fails, are those of a node.
func TestLogOfTheManual(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	source := filepath.Join(dir, "source")
	example := filepath.Join(process.Root(), "docs", "example", "words", "2026-01-31")
	publish := func(version string, most int) {
		tmp := filepath.Join(source, "words", "_"+version)
		expect.NoError(t, os.MkdirAll(tmp, 0o755))
		file, err := os.ReadFile(filepath.Join(example, "part-r-00001"))
		if err == nil {
			err = os.WriteFile(filepath.Join(tmp, "part-r-00000"), file[:min(len(file), most)], 0o644)
		}
		if err == nil {
			err = os.Rename(tmp, filepath.Join(source, "words", version))
		}
		expect.NoError(t, err)
	}
	publish("1", 1<<20)
	n := process.Serve(t, process.Config{Source: source, Store: filepath.Join(dir, "store"), Extra: `settle = "0s"` + "\n" + `version_remove_timeout = "0s"` + "\n"}, "words", "1")
	publish("2", 200)
	n.Signal(t, syscall.SIGHUP)
	n.WaitLog(t, "tried again")
	publish("3", 1<<20)
	n.Signal(t, syscall.SIGHUP)
	n.WaitLog(t, `msg="version removed" db=words version=1`)

	_, section, _ := strings.Cut(page(t, "OPERATING.md"), "\n## Logs\n")
	shown := 0
	for _, m := range regexp.MustCompile(`(?m)^    (level=.*)$`).FindAllStringSubmatch(section, -1) {
		if strings.Contains(m[1], "msg=loading ") {
			continue // every ten seconds of a load
		}
		shown++
		if !slices.ContainsFunc(strings.Split(n.Log(), "\n"), func(line string) bool { return alike(m[1], line) }) {
			t.Errorf("OPERATING.md shows\n%s\nand the log has no such line:\n%s", m[1], n.Log())
		}
	}
	if shown < 8 {
		t.Errorf("%d lines", shown)
	}
}

// alike reports whether a line of the log has the level and the message of the one that is shown, and its attributes in
// their order.
func alike(shown, line string) bool {
	what := regexp.MustCompile(`level=\w+ msg=("[^"]*"|\w+)`)
	_, line, found := strings.Cut(line, what.FindString(shown))
	for _, name := range attribute.FindAllStringSubmatch(strings.Replace(shown, what.FindString(shown), "", 1), -1) {
		var has bool
		_, line, has = strings.Cut(line, " "+name[1]+"=")
		found = found && has
	}
	return found
}

// The lines of the log that OPERATING.md explains are in the program, up to what differs in each (…).
func TestLinesOfTheManual(t *testing.T) {
	t.Parallel()
	var program strings.Builder
	err := filepath.WalkDir(process.Root(), func(path string, d os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && path != process.Root() || d.Name() == "test"):
			return filepath.SkipDir
		}
		if strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
			text, err := os.ReadFile(path)
			program.Write(text)
			return err
		}
		return nil
	})
	expect.NoError(t, err)
	_, table, _ := strings.Cut(page(t, "OPERATING.md"), "\nWhat other lines mean, and what to do:\n")
	table, _, _ = strings.Cut(table, "\nNo log contains values.")
	lines := 0
	for row := range strings.Lines(table) {
		columns := strings.Split(row, "|")
		if len(columns) < 3 {
			continue
		}
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(columns[1], -1) {
			text, _, _ := strings.Cut(strings.Trim(m[1], `"`), "…")
			if lines++; !strings.Contains(program.String(), strings.TrimSpace(text)) {
				t.Errorf("nothing logs %q", m[1])
			}
		}
	}
	if lines < 30 {
		t.Errorf("%d lines", lines)
	}
}
