package statuspage

import (
	"encoding/json"
	"flag"
	"html"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sequins/status"
)

var update = flag.Bool("update", false, "rewrite the files in testdata")

var pageTime = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

// The page of a node on which everything happens at once, whose status JSON the server's tests keep.
func TestPage(t *testing.T) {
	doc, err := os.ReadFile("../server/testdata/status.json")
	if err != nil {
		t.Fatal(err)
	}
	var st status.Status
	if err := json.Unmarshal(doc, &st); err != nil {
		t.Fatal(err)
	}
	p := newPage(st, "", pageTime)
	var b strings.Builder
	if err := pageTemplate.Execute(&b, p); err != nil { // without style and script
		t.Fatal(err)
	}
	const path = "testdata/page.html"
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// The policy allows the page's own style and script, to the byte, and nothing else.
func TestPagePolicy(t *testing.T) {
	page, err := Render(status.Status{}, "", pageTime)
	if err != nil {
		t.Fatal(err)
	}
	for tag, directive := range map[string]string{"style": "style-src ", "script": "script-src "} {
		_, rest, _ := strings.Cut(string(page), "<"+tag+">")
		source, _, closed := strings.Cut(rest, "</"+tag+">")
		if !closed || len(source) < 1000 || strings.Count(string(page), "<"+tag) != 1 || !strings.Contains(Policy, directive+digest(source)+";") {
			t.Errorf("the %s of %d bytes is not what %q allows", tag, len(source), Policy)
		}
	}
	if strings.Contains(Policy, "unsafe") {
		t.Error(Policy)
	}
}

// Whatever stands in a name, an error or a path is text on the page.
func TestStatusPageEscapes(t *testing.T) {
	const evil = `"><script>alert(1)</script>&'`
	st := status.Status{Node: evil, Build: evil, Source: evil, SourceError: evil, Warnings: []string{evil}, DBs: map[string]status.DB{
		evil: {Error: evil, Pin: &status.Pin{Version: evil, Reason: evil, By: evil, Exclude: []string{evil}}, HotKeys: []status.HotKey{{Key: evil}, {Hash: evil}}, Versions: map[string]status.Version{evil: {Path: evil, Nodes: map[string]status.OnNode{
			evil: {State: evil, Error: evil, Detail: evil, Partitioner: evil, Current: true, Progress: &status.Progress{}},
			"x":  {State: evil, Detail: evil},
		}}}},
	}}
	st.Complete(false, evil)
	page, err := Render(st, "", pageTime)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(page), pageScript, "", 1)
	if strings.Count(text, "<script") != 1 || !strings.Contains(text, "<script></script>") { // our own
		t.Errorf("not escaped:\n%s", text)
	}
	if n := strings.Count(html.UnescapeString(text), evil); n < 14 {
		t.Errorf("only %d of the texts are on the page:\n%s", n, text)
	}
}

// Keys that are read often are shown by their hashes, or themselves if the status has them.
func TestHotKeys(t *testing.T) {
	st := status.Status{DBs: map[string]status.DB{"db": {HotKeys: []status.HotKey{
		{Hash: "0123456789abcdef", Share: 0.5, PerSecond: 12345.6}, {Hash: "x", Key: "a%20b", Share: 0.123, PerSecond: 0.26}, {Hash: "x", Key: "long", Truncated: true},
	}}}}
	want := []hotView{{"hash 0123456789abcdef", "50.0 % of the reads, about 12,345 a second"}, {"a%20b", "12.3 % of the reads, about 0.3 a second"},
		{"long…", "0.0 % of the reads, about 0.0 a second"}}
	if diff := cmp.Diff(want, newPage(st, "", pageTime).DBs[0].HotKeys); diff != "" {
		t.Error(diff)
	}
	page, err := Render(st, "db", pageTime)
	if err != nil || !strings.Contains(string(page), "<li><code>hash 0123456789abcdef</code> <span class=\"dim\">50.0 % of the reads") {
		t.Errorf("%s, %v", page, err)
	}
}
