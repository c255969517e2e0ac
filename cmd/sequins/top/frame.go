package top

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"sequins/internal/human"
	"sequins/internal/term"
	"sequins/observe/status"
)

// section is a part of the screen: a line of headings, and lines of which as many are shown as there is room for.
type section struct {
	head  string
	lines []string
	want  int // lines with head; 0 hides it
}

// Frame returns the lines of the screen, at most height of them, each of at most width columns.
func (v *View) Frame(width, height int, now time.Time) []string {
	lines := v.header(width, now)
	footer := v.footer(width)
	if v.st != nil {
		parts := []*section{v.loads(width, now), v.nodes(width), v.events(width)}
		rows := v.databases()
		dbs := &section{want: 1 + max(1, len(rows))}
		divide(append([]*section{dbs}, parts...), height-len(lines)-1)
		i := v.indexOf(rows) // which is one of those that are shown
		v.shown = max(0, dbs.want-1)
		v.first = min(v.first, i, max(0, len(rows)-v.shown))
		v.first = max(v.first, i-v.shown+1, 0)
		v.drawDatabases(dbs, rows, width)
		for _, s := range append([]*section{dbs}, parts...) {
			if s.want > 0 {
				lines = append(lines, s.head)
				lines = append(lines, s.lines[:min(len(s.lines), s.want-1)]...)
			}
		}
	}
	lines = lines[:min(len(lines), max(0, height-1))]
	for len(lines) < height-1 {
		lines = append(lines, "")
	}
	return append(lines, footer)[:max(0, height)]
}

// least is the number of lines that a section gets before others get more.
const least = 3

// divide divides the lines among the sections: each gets a few, and then the first gets what it wants, and so on.
func divide(sections []*section, lines int) {
	wants := make([]int, len(sections))
	for i, s := range sections {
		wants[i] = s.want
		s.want = min(wants[i], least, max(0, lines))
		if s.want < 2 {
			s.want = 0 // headings alone say nothing
		}
		lines -= s.want
	}
	for i, s := range sections {
		if s.want > 0 {
			more := min(wants[i]-s.want, max(0, lines))
			s.want += more
			lines -= more
		}
	}
}

// line is a line of which the parts have colors.
type line struct {
	v     *View
	width int // columns that are left
	b     strings.Builder
}

func (v *View) line(width int) *line { return &line{v: v, width: width} }

// add adds a text, cut to what is left.
func (l *line) add(color term.Color, text string) *line {
	text = term.Cut(text, l.width)
	l.width -= term.Columns(text)
	l.b.WriteString(l.v.console.Paint(color, text))
	return l
}

// cell adds a text as a column: right-aligned if width is negative.
func (l *line) cell(color term.Color, width int, text string) *line {
	right := width < 0
	width = max(width, -width)
	text = term.Cut(text, width)
	space := strings.Repeat(" ", width-term.Columns(text))
	if right {
		return l.add(term.Plain, space).add(color, text).add(term.Plain, "  ")
	}
	return l.add(color, text).add(term.Plain, space+"  ")
}

func (l *line) String() string { return l.b.String() }

// LevelColors are the colors of the levels of health, StateColors those of states.
var (
	LevelColors = map[string]term.Color{status.LevelGood: term.Green, status.LevelWarn: term.Yellow, status.LevelBad: term.Red}
	StateColors = map[status.State]term.Color{
		status.Active: term.Green, status.Building: term.Cyan, status.Available: term.Cyan,
		status.Held: term.Yellow, status.Error: term.Red, status.Kept: term.Dim, status.Removing: term.Dim,
	}
)

// header returns the lines about the node as a whole.
func (v *View) header(width int, now time.Time) (lines []string) {
	title := []string{"sequins top", term.Clean(v.name)}
	if st := v.st; st != nil {
		if st.Build != "" {
			title = append(title, term.Clean(st.Build))
		}
		if !st.StartedAt.IsZero() {
			title = append(title, "up for "+human.Duration(now.Sub(st.StartedAt)))
		}
	}
	title = append(title, now.UTC().Format(time.TimeOnly)+" UTC")
	lines = append(lines, v.line(width).add(term.Bold, strings.Join(title, ", ")).String())
	switch {
	case v.failed != nil:
		text := term.Clean(v.failed.Error())
		if v.st != nil {
			text = "what follows is " + human.Duration(now.Sub(v.at)) + " old: " + text
		}
		lines = append(lines, v.line(width).add(term.Red, text).String())
	case v.st == nil:
		return append(lines, v.line(width).add(term.Plain, "asking the node").String())
	}
	if v.st == nil {
		return lines
	}
	health, _, findings := v.st.Overview()
	if v.failed == nil {
		lines = append(lines, v.line(width).add(LevelColors[v.st.Level], term.Clean(health)).String())
	}
	lines = append(lines, v.totals(width))
	if len(findings) > 0 { // there is room for one
		lines = append(lines, v.line(width).add(term.Yellow, term.Clean(findings[0].Line(v.at))).String())
	}
	return lines
}

// totals returns the line with the traffic and the disk of the node, or of the cluster.
func (v *View) totals(width int) string {
	t := v.st.Traffic
	for _, p := range v.st.Peers {
		t.Add(p.Traffic)
	}
	l := v.line(width)
	if n := len(v.st.Peers); n > 0 {
		l.add(term.Plain, human.Plural(n+1, "node")+": ")
	}
	l.add(term.Bold, human.Rate(t.Requests)).add(term.Plain, " requests a second, "+percent(t.MissShare())+" missed, ")
	color := term.Plain
	if t.Errors > 0 {
		color = term.Red
	}
	l.add(color, human.Rate(t.Errors)+" errors").add(term.Plain, ", p50 "+latency(t.P50)+", p99 "+latency(t.P99))
	if d := v.st.Disk; d.Bytes > 0 {
		l.add(term.Plain, fmt.Sprintf("; %s of disk free", human.Size(d.Free)))
	}
	return l.String()
}

func percent(part float64) string { return strconv.FormatFloat(100*part, 'f', 1, 64) + "%" }

// latency formats seconds, and 0 as a dash.
func latency(seconds float64) string {
	if seconds <= 0 {
		return "-"
	}
	return human.Latency(time.Duration(seconds * 1e9))
}

// The widths of the columns of the databases but the first two; numbers are right-aligned.
const (
	rateWidth    = -9
	missWidth    = -6
	latencyWidth = -7
)

// widest returns the width of a column of texts, within bounds.
func widest(texts []string, least, most int) int {
	w := least
	for _, t := range texts {
		w = max(w, term.Columns(t))
	}
	return min(w, max(least, most))
}

// drawDatabases draws the table of databases.
func (v *View) drawDatabases(s *section, rows []row, width int) {
	var names, versions []string
	for _, r := range rows {
		names, versions = append(names, term.Clean(r.name)), append(versions, term.Clean(r.db.Current(v.st.Node)))
	}
	n, m := widest(names, 9, width/4), widest(versions, 7, width/6)
	mark := func(o order, text string) string {
		switch {
		case v.order != o:
			return text
		case v.reversed != (o == byName): // numbers descend
			return text + "↑"
		}
		return text + "↓"
	}
	s.head = v.heading(width, func(l *line) {
		l.cell(term.Plain, n, mark(byName, "DATABASE")).cell(term.Plain, m, "VERSION").cell(term.Plain, rateWidth, mark(byRequests, "REQ/S")).
			cell(term.Plain, missWidth, mark(byMisses, "MISS")).cell(term.Plain, latencyWidth, "P50").cell(term.Plain, latencyWidth, mark(byLatency, "P99"))
	})
	if len(rows) == 0 {
		s.lines = []string{v.line(width).add(term.Dim, "no database").String()}
		return
	}
	selected := v.indexOf(rows)
	for i := v.first; i < len(rows) && i < v.first+v.shown; i++ {
		r := rows[i]
		color, pointer := term.Plain, "  "
		if i == selected {
			color, pointer = term.Bold, "> "
		}
		text, state := v.note(r)
		l := v.line(width).add(color, pointer).cell(color, n, names[i])
		l.cell(term.Plain, m, versions[i]).cell(color, rateWidth, human.Rate(r.traffic.Requests)).cell(term.Plain, missWidth, percent(r.traffic.MissShare()))
		l.cell(term.Plain, latencyWidth, latency(r.traffic.P50)).cell(term.Plain, latencyWidth, latency(r.traffic.P99)).add(state, text)
		s.lines = append(s.lines, l.String())
	}
}

// heading returns a line of headings over the whole width.
func (v *View) heading(width int, add func(*line)) string {
	colorless := *v
	colorless.console.Colors = false
	l := colorless.line(width)
	l.add(term.Plain, "  ")
	add(l)
	return v.console.Paint(term.Reverse, l.String()+strings.Repeat(" ", l.width))
}

// note describes what is special about a database: its error, its newest version that is not served, its pin, its misses.
func (v *View) note(r row) (string, term.Color) {
	if r.db.Error != "" {
		return term.Clean(r.db.Error), term.Red
	}
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(r.db.Versions))) {
		version := r.db.Versions[name]
		n, here := version.Nodes[v.st.Node]
		switch {
		case n.Current && n.Error != "":
			return term.Clean(version.Brief(n.Error, name)), term.Red
		case !here || n.Current || n.State == status.Removing || n.State == status.Kept || n.State == status.Active:
			continue
		}
		return term.Clean(name + " " + string(n.State) + reason(&version, name, n)), StateColors[n.State]
	}
	switch {
	case r.db.Pin != nil:
		return term.Clean(r.db.Pin.String()), term.Yellow
	case r.traffic.NearlyAllMiss():
		return "nearly all reads find no key", term.Yellow
	}
	return "", term.Plain
}

// reason returns what a version on a node does, waits for or failed at.
func reason(v *status.Version, name string, n status.OnNode) string {
	if text := cmp.Or(v.Brief(n.Error, name), n.Detail); text != "" {
		return ": " + text
	}
	return ""
}
