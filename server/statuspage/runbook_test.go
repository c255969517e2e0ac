package statuspage

import (
	"bytes"
	"fmt"
	"html/template"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"

	"sequins/observe/status"
	"sequins/test/expect"
	"sequins/version/pin"
)

// anchors returns the anchors of the runbook as nodes show it.
func anchors(t *testing.T) (all []string, page string) {
	t.Helper()
	for _, m := range regexp.MustCompile(`<h[23] id="([^"]+)"`).FindAllSubmatch(Runbook, -1) {
		all = append(all, string(m[1]))
	}
	return all, string(Runbook)
}

// The page is made of docs/RUNBOOK.md. It names other pages of the documentation instead of linking to them, as nodes do not have them.
func TestRunbookIsOfTheDocs(t *testing.T) {
	text, err := os.ReadFile("../../docs/RUNBOOK.md")
	expect.NoError(t, err)
	text = regexp.MustCompile(`\[([^\]]+)\]\(([A-Z]+\.md[^)]*)\)`).ReplaceAll(text, []byte("$1 (docs/$2)"))
	markdown := goldmark.New(goldmark.WithExtensions(extension.Table), goldmark.WithParserOptions(parser.WithAutoHeadingID()))
	var body, page bytes.Buffer
	expect.NoError(t, markdown.Convert(text, &body))
	named := bytes.ReplaceAll(body.Bytes(), []byte("<table>"), []byte(`<table aria-label="What this section lists">`)) // for screen readers
	var headings []template.HTML
	for _, h := range regexp.MustCompile(`<h[23] id="([^"]+)">(.*?)</h[23]>`).FindAllSubmatch(named, -1) {
		headings = append(headings, template.HTML(fmt.Sprintf(`<a href="#%s">%s</a>`, h[1], h[2])))
	}
	expect.NoError(t, template.Must(template.ParseFiles("testdata/runbook.tmpl")).Execute(&page, map[string]any{
		"Style": template.CSS(pageStyle), "Body": template.HTML(named), "Headings": headings,
	}))
	if *update {
		expect.NoError(t, os.WriteFile("runbook.html", page.Bytes(), 0o644))
	} else if !bytes.Equal(page.Bytes(), Runbook) {
		t.Error("runbook.html is not what RUNBOOK.md makes: go test ./server/statuspage -update")
	}
}

// The runbook has an anchor for each link in it and in the alert rules, and no link to a page that nodes do not have.
func TestRunbook(t *testing.T) {
	known, page := anchors(t)
	for _, m := range regexp.MustCompile(`href="([^"]*)"`).FindAllStringSubmatch(page, -1) {
		if inside, ok := strings.CutPrefix(m[1], "#"); ok && !slices.Contains(known, inside) || !ok && m[1] != "/" && m[1] != "data:," {
			t.Errorf("a link to %s", m[1])
		}
	}
	rules, err := os.ReadFile("../../packaging/contrib/prometheus/alerts.yml")
	expect.NoError(t, err)
	alerts := regexp.MustCompile(`(?s)- alert: (\w+)\n.*?runbook_url: "http://sequins:9599/-/runbook#(\w+)"`).FindAllStringSubmatch(string(rules), -1)
	for _, m := range alerts {
		if strings.ToLower(m[1]) != m[2] || !slices.Contains(known, m[2]) {
			t.Errorf("%s leads to %s", m[1], m[2])
		}
	}
	for _, section := range strings.Split(page, "<h3 id=\"")[1:] {
		for _, part := range []string{"<strong>Means:</strong>", "<strong>Confirm", "<strong>Do", "<pre>"} {
			if !strings.Contains(section, part) && !strings.HasPrefix(section, "entries-that-are-left-out") { // which the page itself confirms
				t.Errorf("there is no %s in %.40q", part, section)
			}
		}
	}
	if n := strings.Count(string(rules), "- alert: "); n != len(alerts) || strings.Count(string(rules), "runbook_url:") != n {
		t.Errorf("%d alerts, %d with a link", n, len(alerts))
	}
	if len(known) < 25 || !strings.Contains(page, "(docs/TRUST.md#gates)") {
		t.Errorf("anchors %q", known)
	}
}

// Each thing that can be wrong has a section.
func TestFindingsHaveSections(t *testing.T) {
	known, _ := anchors(t)
	on := func(n status.OnNode) status.Version {
		return status.Version{Nodes: map[string]status.OnNode{"n": n}}
	}
	served := on(status.OnNode{State: status.Active, Current: true})
	lost, thin := served, served
	lost.MissingPartitions, thin.UnderreplicatedPartitions = 1, 1
	all := []status.Status{
		{},
		{Node: "n", SourceError: "x", ReloadError: "x", Warnings: []string{"x"}, Problems: []string{"x"}, ZooKeeper: &status.ZooKeeper{},
			Disk: status.Disk{Bytes: 10, Low: true}, Peers: map[string]status.Peer{"a": {Error: "x"}},
			Differences: []status.Difference{{Setting: "x"}, {Setting: status.SettingBuild}},
			DBs: map[string]status.DB{
				"lost": {Versions: map[string]status.Version{"1": lost}}, "thin": {Versions: map[string]status.Version{"1": thin}}, "idle": {},
				"failed":   {Versions: map[string]status.Version{"1": served, "2": on(status.OnNode{State: status.Error})}},
				"held":     {Versions: map[string]status.Version{"1": served, "2": on(status.OnNode{State: status.Held})}},
				"uneven":   {Hints: []string{"x"}, Versions: map[string]status.Version{"1": served}},
				"unlisted": {Error: "x", Versions: map[string]status.Version{"1": served}},
				"unwanted": {Pin: &pin.File{Exclude: []string{"1"}}, Versions: map[string]status.Version{"1": served}},
			}},
	}
	found := map[string]bool{"not-ready": true}
	for _, st := range all {
		for _, f := range st.Findings() {
			found[f.Runbook] = true
			if f.Runbook == "" || strings.Contains(f.Line(time.Now()), "%") {
				t.Errorf("%+v", f)
			}
		}
	}
	for anchor := range found {
		if !slices.Contains(known, anchor) {
			t.Errorf("there is no section %s", anchor)
		}
	}
	if len(found) != 17 {
		t.Errorf("%d sections: %v", len(found), found)
	}
}
