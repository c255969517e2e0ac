package server

import (
	"crypto/sha256"
	_ "embed" // page.html, page.css, page.js
	"encoding/base64"
	"fmt"
	"html/template"
	"maps"
	"slices"
	"strconv"
	"time"

	"sequins/internal/human"
)

//go:embed page.html
var pageSource string

//go:embed page.css
var pageStyle string

//go:embed page.js
var pageScript string

// pagePolicy allows only the page's own style and script, and connections only to this node.
var pagePolicy = "default-src 'none'; style-src " + digest(pageStyle) + "; script-src " + digest(pageScript) +
	"; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// digest returns the source expression of an inline style or script in a Content-Security-Policy.
func digest(source string) string {
	sum := sha256.Sum256([]byte(source))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

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
	Error                string
	Facts                []fact
	Versions             []versionView
}

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

// newPage formats the status of the whole node, or of one db.
func newPage(st Status, level, only string, now time.Time) page {
	p := page{Level: level, Headline: st.Health, Node: st.Node, Build: st.Build, Source: st.Source, Only: only, Now: clock(now)}
	if !st.StartedAt.IsZero() {
		p.Up = human.Duration(now.Sub(st.StartedAt))
	}
	if d := st.Disk; d.Bytes > 0 {
		p.Disk = human.Size(d.Free) + " of " + human.Size(d.Bytes) + " of disk free"
		if d.Low {
			p.DiskLevel = levelWarn
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
	p.Notes = append(p.Notes, st.Problems...)
	p.Notes = append(p.Notes, st.Warnings...)
	return p
}

func newDBView(name string, db DBStatus, node string, now time.Time) dbView {
	v := dbView{Name: name, Level: levelBad, Summary: "nothing to serve yet", Error: db.Error}
	for _, version := range slices.Backward(slices.Sorted(maps.Keys(db.Versions))) {
		vs := db.Versions[version]
		n, here := vs.Nodes[node]
		if here && n.Current {
			v.Level, v.Summary = levelGood, "serving "+version
			v.Facts = facts(vs, n, now)
		}
		v.Versions = append(v.Versions, newVersionView(version, vs, node, now))
	}
	if v.Level == levelGood && db.failed(node) {
		v.Level = levelWarn
	}
	return v
}

// moving reports whether the view is likely to change within seconds.
func (v dbView) moving() bool {
	return slices.ContainsFunc(v.Versions, func(v versionView) bool { return v.Level == levelBusy })
}

// facts describe the current version.
func facts(v VersionStatus, n NodeStatus, now time.Time) []fact {
	var f []fact
	if !n.LastModified.IsZero() {
		f = append(f, fact{"data from", n.LastModified.UTC().Format(time.DateTime) + " UTC (" + human.Duration(now.Sub(n.LastModified)) + " ago)"})
	}
	if !n.ActiveAt.IsZero() {
		f = append(f, fact{"active for", human.Duration(now.Sub(n.ActiveAt))})
	}
	f = append(f, fact{"partitions here", fmt.Sprintf("%d of %d", len(n.Partitions), v.NumPartitions)})
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

func newVersionView(name string, v VersionStatus, node string, now time.Time) versionView {
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

func stateLevel(s State) string {
	switch s {
	case StateActive:
		return levelGood
	case StateBuilding:
		return levelBusy
	case StateError:
		return levelBad
	}
	return ""
}

// summary describes a version on a node in one line.
func summary(v VersionStatus, n NodeStatus, now time.Time) string {
	s := fmt.Sprintf("%d of %s", len(n.Partitions), count(v.NumPartitions, "partition"))
	if n.State == StateActive && v.MissingPartitions > 0 {
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

func percent(p *Progress) string {
	if p.Bytes <= 0 {
		return "0"
	}
	return strconv.FormatInt(min(100, max(0, int64(100*float64(p.BytesDone)/float64(p.Bytes)))), 10)
}

// progress describes the progress of a load.
func progress(p *Progress, now time.Time) string {
	s := fmt.Sprintf("%s of %s read, %d of %s, %s records", human.Size(p.BytesDone), human.Size(p.Bytes),
		p.FilesDone, count(p.Files, "file"), human.Count(p.Records))
	if p.RecordsPerSecond > 0 {
		s += fmt.Sprintf(" (%s a second)", human.Count(int64(p.RecordsPerSecond)))
	}
	if left := p.ETA.Sub(now); !p.ETA.IsZero() && left > 0 {
		s += ", about " + human.Duration(left) + " left"
	}
	return s
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

func since(t, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	return " since " + human.Duration(now.Sub(t))
}
