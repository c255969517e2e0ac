// Package statuspage renders a status as a page of HTML, with one style and one script and nothing from elsewhere.
// Without scripts the page shows the status as it was; with them it asks the node for the JSON every few seconds.
package statuspage

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // page.html, page.css, page.js
	"encoding/base64"
	"fmt"
	"html/template"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"sequins/internal/human"
	"sequins/status"
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

var pageTemplate = template.Must(template.New("page").Parse(pageSource))

// page is the data of page.html, already formatted as text. With scripts enabled, page.js shows more and
// keeps it up to date.
type page struct {
	Style  template.CSS
	Script template.JS

	Level, Headline string
	Notes           []string
	DBs             []dbView
	Only            string // the only db to show, "" for all
	Refresh         bool   // something is in progress
	Shut            bool   // shown without a token: has no content
	Node, Build     string
	Source, Up, Now string
	Disk, DiskLevel string // Disk is "" if unknown
}

// clock formats a time for the page.
func clock(t time.Time) string { return t.UTC().Format(time.DateTime) }

type dbView struct {
	Name, Level, Summary string
	Error, Pin           string
	Facts                []fact
	HotKeys              []hotView
	Events               []eventView
	Versions             []versionView
}

type eventView struct{ Time, Kind, Level, Version, Reason string }

type hotView struct{ Name, Summary string }

type fact struct{ Name, Value string }

type versionView struct {
	Name, State, Level string
	Current            bool
	Summary            string
	Error              string
	Percent            string // of a load; "" if there is none
	Progress           string
	Path               string
	Nodes              []nodeView // if there are several
}

type nodeView struct{ Name, State, Level, Summary string }

// Render returns the page of a completed status: of the whole node, or of the db named only.
func Render(st status.Status, only string, now time.Time) ([]byte, error) {
	return execute(newPage(st, only, now))
}

// RenderLogin returns a page without content that asks for a token.
func RenderLogin(only string, now time.Time) ([]byte, error) {
	return execute(page{Level: status.LevelWarn, Headline: "This node wants a token.", Only: only, Shut: true, Now: clock(now)})
}

func execute(p page) ([]byte, error) {
	p.Style, p.Script = template.CSS(pageStyle), template.JS(pageScript) //nolint:gosec // they are our own
	var b bytes.Buffer
	err := pageTemplate.Execute(&b, p)
	return b.Bytes(), err
}

func newPage(st status.Status, only string, now time.Time) page {
	p := page{Level: st.Level, Headline: st.Health, Node: st.Node, Build: st.Build, Source: st.Source, Only: only, Now: clock(now)}
	if !st.StartedAt.IsZero() {
		p.Up = human.Duration(now.Sub(st.StartedAt))
	}
	if d := st.Disk; d.Bytes > 0 {
		p.Disk = human.Size(d.Free) + " of " + human.Size(d.Bytes) + " of disk free"
		if d.Low {
			p.DiskLevel = status.LevelWarn
		}
	}
	for _, name := range slices.Sorted(maps.Keys(st.DBs)) {
		v := newDBView(name, st.DBs[name], st.Node, now)
		p.Refresh = p.Refresh || v.moving()
		if only == "" || only == name {
			p.DBs = append(p.DBs, v)
		}
	}
	if st.SourceError != "" {
		p.Notes = append(p.Notes, "The source cannot be read"+since(st.SourceErrorSince, now)+": "+st.SourceError)
	}
	if st.ReloadError != "" {
		p.Notes = append(p.Notes, "The reload of the configuration has failed"+since(st.ReloadErrorSince, now)+": "+st.ReloadError)
	}
	p.Notes = append(p.Notes, st.Problems...)
	for _, d := range st.Differences {
		p.Notes = append(p.Notes, d.String())
	}
	p.Notes = append(p.Notes, st.Warnings...)
	return p
}

func newDBView(name string, db status.DB, node string, now time.Time) dbView {
	v := dbView{Name: name, Level: status.LevelBad, Summary: "nothing to serve yet", Error: db.Error}
	if db.Pin != nil {
		v.Pin = db.Pin.String()
	}
	for _, k := range db.HotKeys {
		v.HotKeys = append(v.HotKeys, newHotView(k))
	}
	for _, e := range db.Events {
		v.Events = append(v.Events, eventView{clock(e.Time), strings.ReplaceAll(string(e.Kind), "_", " "), e.Level(), e.Version, e.Reason})
	}
	for _, version := range slices.Backward(slices.Sorted(maps.Keys(db.Versions))) {
		vs := db.Versions[version]
		n, here := vs.Nodes[node]
		if here && n.Current {
			v.Level, v.Summary = status.LevelGood, "serving "+version
			v.Facts = facts(vs, n, now)
		}
		v.Versions = append(v.Versions, newVersionView(version, vs, node, now))
	}
	if v.Level == status.LevelGood && (db.Failed(node) || db.Holds(node) != "") {
		v.Level = status.LevelWarn
	}
	return v
}

func newHotView(k status.HotKey) hotView {
	rate := strconv.FormatFloat(k.PerSecond, 'f', 1, 64)
	if k.PerSecond >= 10 {
		rate = human.Count(int64(k.PerSecond))
	}
	v := hotView{k.Key, fmt.Sprintf("%.1f %% of the reads, about %s a second", 100*k.Share, rate)}
	switch {
	case k.Truncated:
		v.Name += "…"
	case k.Key == "":
		v.Name = "hash " + k.Hash
	}
	return v
}

// moving reports whether the view is likely to change within seconds.
func (v dbView) moving() bool {
	return slices.ContainsFunc(v.Versions, func(v versionView) bool { return v.Level == busy })
}

// facts describe the current version.
func facts(v status.Version, n status.OnNode, now time.Time) []fact {
	var f []fact
	if !n.LastModified.IsZero() {
		f = append(f, fact{"data from", n.LastModified.UTC().Format(time.DateTime) + " UTC (" + human.Duration(now.Sub(n.LastModified)) + " ago)"})
	}
	if !n.ActiveAt.IsZero() {
		f = append(f, fact{"active for", human.Duration(now.Sub(n.ActiveAt))})
	}
	f = append(f, fact{"partitions here", fmt.Sprintf("%d of %d", len(n.Partitions), v.NumPartitions)})
	if n.Unchanged > 0 {
		f = append(f, fact{"not changed", human.Plural(n.Unchanged, "partition")})
	}
	if n.Records > 0 {
		f = append(f, fact{"records here", human.Count(n.Records)})
	}
	if n.Bytes > 0 {
		f = append(f, fact{"on disk", human.Size(n.Bytes)})
	}
	if n.Partitioner != "" {
		f = append(f, fact{"partitioner", n.Partitioner})
	}
	return f
}

func newVersionView(name string, v status.Version, node string, now time.Time) versionView {
	n := v.Nodes[node]
	view := versionView{
		Name: name, State: string(n.State), Level: stateLevel(n.State), Current: n.Current,
		Error: n.Error, Path: v.Path, Summary: summary(v, n, now),
	}
	if n.Progress != nil {
		view.Percent, view.Progress = percent(n.Progress), progress(n.Progress, now)
	}
	if len(v.Nodes) > 1 || (len(v.Nodes) == 1 && n.Name == "" && n.State == "") {
		for _, other := range slices.Sorted(maps.Keys(v.Nodes)) {
			o := v.Nodes[other]
			view.Nodes = append(view.Nodes, nodeView{other, string(o.State), stateLevel(o.State), summary(v, o, now)})
		}
	}
	return view
}

func stateLevel(s status.State) string {
	switch s {
	case status.Active:
		return status.LevelGood
	case status.Building:
		return busy
	case status.Held:
		return status.LevelWarn
	case status.Error:
		return status.LevelBad
	}
	return ""
}

// summary describes a version on a node in one line.
func summary(v status.Version, n status.OnNode, now time.Time) string {
	s := fmt.Sprintf("%d of %s", len(n.Partitions), human.Plural(v.NumPartitions, "partition"))
	if n.State == status.Active && v.MissingPartitions > 0 {
		s += fmt.Sprintf(", %d missing everywhere", v.MissingPartitions)
	}
	if !n.CreatedAt.IsZero() {
		s += ", seen " + human.Duration(now.Sub(n.CreatedAt)) + " ago"
	}
	if n.Detail != "" {
		s += ", " + n.Detail
	}
	return s
}

func percent(p *status.Progress) string {
	if p.Bytes <= 0 {
		return "0"
	}
	return strconv.FormatInt(min(100, max(0, int64(100*float64(p.BytesDone)/float64(p.Bytes)))), 10)
}

// progress describes the progress of a load.
func progress(p *status.Progress, now time.Time) string {
	s := fmt.Sprintf("%s of %s read, %d of %s, %s records", human.Size(p.BytesDone), human.Size(p.Bytes),
		p.FilesDone, human.Plural(p.Files, "file"), human.Count(p.Records))
	if p.RecordsPerSecond > 0 {
		s += fmt.Sprintf(" (%s a second)", human.Count(int64(p.RecordsPerSecond)))
	}
	if left := p.ETA.Sub(now); !p.ETA.IsZero() && left > 0 {
		s += ", about " + human.Duration(left) + " left"
	}
	return s
}

func since(t, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	return " since " + human.Duration(now.Sub(t))
}
