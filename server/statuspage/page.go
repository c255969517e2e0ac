// Package statuspage renders a status as pages of HTML: of a node, of one database, and the runbook. A page is one document, with one
// style and one script and nothing from elsewhere, and is complete without scripts. The script asks for the page again every few
// seconds and changes what differs, so that there is one rendering of everything.
package statuspage

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // page.html, page.css, page.js, runbook.html
	"encoding/base64"
	"html/template"
	"reflect"
	"strings"
	"sync"
	"time"

	"sequins/internal/human"
	"sequins/observe/status"
)

//go:embed page.html
var pageSource string

//go:embed page.css
var pageStyle string

//go:embed page.js
var pageScript string

// Runbook is the page of docs/RUNBOOK.md, with the same style. go test -update makes it.
//
//go:embed runbook.html
var Runbook []byte

// Policy is the Content-Security-Policy of the pages. It allows only the page's own style and script, and connections only to this node.
var Policy = "default-src 'none'; style-src " + digest(pageStyle) + "; script-src " + digest(pageScript) +
	"; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// digest returns the source expression of an inline style or script in a Content-Security-Policy.
func digest(source string) string {
	sum := sha256.Sum256([]byte(source))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// busy is the class of what is in progress; the other classes are the levels of package status.
const busy = "busy"

// levelNames are the levels for those who do not see their marks.
var levelNames = map[string]string{
	status.LevelGood: "good", status.LevelWarn: "warning", status.LevelBad: "problem", status.LevelNote: "note", busy: "in progress",
}

// pageTemplate is parsed when a page is first asked for: the program starts for each load and each command, too.
var pageTemplate = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("page").Funcs(template.FuncMap{
		"levelName": func(level string) string { return levelNames[level] },
		"words":     func(kind status.EventKind) string { return strings.ReplaceAll(string(kind), "_", " ") },
		"clock":     func(t time.Time) string { return t.UTC().Format(time.DateTime) },
		"stamp":     func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"count":     func(n any) string { return human.Count(reflect.ValueOf(n).Int()) },
		"plural":    human.Plural, "size": human.Size, "rate": human.Rate,
		"latency": latency, "percent": percent, "stateLevel": stateLevel, "held": held,
	}).Parse(pageSource))
})

// latency formats a time in seconds; 0 is not known.
func latency(seconds float64) string {
	if seconds <= 0 {
		return "–"
	}
	return human.Latency(time.Duration(seconds * 1e9))
}

// percent returns a part of all in percent, from 0 to 100.
func percent(part, all int64) int64 {
	if all <= 0 {
		return 0
	}
	return min(100, max(0, int64(100*float64(part)/float64(all))))
}

// held returns a fraction in words: all 8, or 7 of 8.
func held(n, all int) string {
	if n == all {
		return human.Count(int64(all))
	}
	return human.Count(int64(n)) + " of " + human.Count(int64(all))
}

type page struct {
	Style  template.CSS
	Script template.JS

	Status *status.Status
	Now    time.Time

	Title           string
	Level, Headline string
	Runbook         string // the section on the headline, "" if there is none
	Findings        []status.Finding
	Shut            bool           // shown without a token: has no content
	Traffic         status.Traffic // of the databases of all nodes, or of the one

	Waiting []status.Wait
	DBs     []dbRow
	Nodes   []nodeRow
	Events  []status.Event
	Names   []string // of the databases whose keys can be looked up
	One     *dbView  // the page of one database; nil on that of the node
}

// note is a remark in a table. Load is the progress that it is about; it may be nil.
type note struct {
	Level, Text string
	Load        *status.Progress
}

// Ago returns the time since t, "" if t is not known.
func (p *page) Ago(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return human.Duration(p.Now.Sub(t))
}

// Left returns the time that a load still takes, "" if it is not known.
func (p *page) Left(load *status.Progress) string { return left(load, p.Now) }

func left(load *status.Progress, now time.Time) string {
	if load.ETA.IsZero() || !load.ETA.After(now) {
		return ""
	}
	return ", about " + human.Duration(load.ETA.Sub(now)) + " left"
}

// Reason returns the reason of an event, without what the page says already.
func (p *page) Reason(e status.Event) string {
	v := p.Status.DBs[e.DB].Versions[e.Version]
	return v.Brief(e.Reason, e.Version)
}

// Render returns the page of a completed status: of the whole node, or of the db named only.
func Render(st status.Status, only string, now time.Time) ([]byte, error) {
	return execute(newPage(&st, only, now))
}

// RenderLogin returns a page without content that asks for a token.
func RenderLogin(only string, now time.Time) ([]byte, error) {
	return execute(&page{Title: titled(status.LevelWarn, only), Level: status.LevelWarn, Headline: "This node wants a token.", Shut: true,
		Status: new(status.Status), Now: now})
}

func execute(p *page) ([]byte, error) {
	p.Style, p.Script = template.CSS(pageStyle), template.JS(pageScript) //nolint:gosec // they are our own
	var b bytes.Buffer
	err := pageTemplate().Execute(&b, p)
	return b.Bytes(), err
}

func titled(level, about string) string {
	title := "sequins"
	if about != "" {
		title = about + " – sequins"
	}
	if level != status.LevelGood {
		title = "⚠ " + title
	}
	return title
}
