// Package statuspage renders a status as pages of HTML: of a node, of one database, and the runbook. A page is one document, with one
// style and one script and nothing from elsewhere, and is complete without scripts. The script asks for the page again every few
// seconds and changes what differs, so that there is one rendering of everything.
package statuspage

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // page.html, page.css, page.js
	"encoding/base64"
	"html/template"
	"time"

	"sequins/observe/status"
)

//go:embed page.html
var pageSource string

//go:embed page.css
var pageStyle string

//go:embed page.js
var pageScript string

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

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"levelName": func(level string) string { return levelNames[level] },
}).Parse(pageSource))

// page is the data of page.html, already formatted as text.
type page struct {
	Style  template.CSS
	Script template.JS

	Title            string
	Level, Headline  string
	Said             string           // the headline for those who listen, with the reason
	Runbook          string           // the section on the headline, "" if there is none
	Findings         []status.Finding // with lines as texts
	About            []string
	Node, Build, Now string
	Refresh          bool // something is in progress
	Shut             bool // shown without a token: has no content

	Tiles     []tile
	Waiting   []waitView
	Traffic   bool // the databases have figures of their requests
	DBs       []dbRow
	Nodes     []nodeRow
	MoreNodes string
	Events    []eventView
	Names     []string // of the databases whose keys can be looked up
	One       *dbView  // the page of one database; nil on that of the node
}

// tile is a figure with its name.
type tile struct{ Name, Value, Unit string }

type waitView struct{ Level, What, Since string }

type eventView struct{ ID, Stamp, Time, DB, Kind, Level, Version, Reason string }

// note is a remark in a table.
type note struct{ Level, Text, Percent string }

// Render returns the page of a completed status: of the whole node, or of the db named only.
func Render(st status.Status, only string, now time.Time) ([]byte, error) {
	return execute(newPage(&st, only, now))
}

// RenderLogin returns a page without content that asks for a token.
func RenderLogin(only string, now time.Time) ([]byte, error) {
	return execute(page{Title: titled(status.LevelWarn, only), Level: status.LevelWarn, Headline: "This node wants a token.", Shut: true, Now: clock(now)})
}

func execute(p page) ([]byte, error) {
	p.Style, p.Script = template.CSS(pageStyle), template.JS(pageScript) //nolint:gosec // they are our own
	var b bytes.Buffer
	err := pageTemplate.Execute(&b, p)
	return b.Bytes(), err
}

// titled returns the title of a page about something.
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

// clock formats a time for the page.
func clock(t time.Time) string { return t.UTC().Format(time.DateTime) }
