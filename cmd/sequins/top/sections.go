package top

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"sequins/internal/human"
	"sequins/internal/term"
	"sequins/observe/status"
)

// work is a version that a node loads, holds, waits with or has failed to load.
type work struct {
	db, version, node string
	on                status.OnNode
	of                status.Version
}

// inProgress returns what the nodes work on, this one first.
func (v *View) inProgress() (all []work) {
	for _, db := range slices.Sorted(maps.Keys(v.st.DBs)) {
		for version, ver := range v.st.DBs[db].Versions {
			for node, on := range ver.Nodes {
				switch on.State {
				case status.Building, status.Available, status.Held, status.Error:
					all = append(all, work{db, version, node, on, ver})
				}
			}
		}
	}
	slices.SortFunc(all, func(a, b work) int {
		return cmp.Or(later(a.node == v.st.Node, b.node == v.st.Node), later(a.on.Progress != nil, b.on.Progress != nil),
			strings.Compare(a.node, b.node), strings.Compare(a.db, b.db), strings.Compare(b.version, a.version))
	})
	return all
}

// later orders what is true before what is false.
func later(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// maxLines limits the lines of a section.
const maxLines = 200

// loads returns the section of the versions that are not served yet.
func (v *View) loads(width int, now time.Time) *section {
	s, all := new(section), v.inProgress()
	if len(all) == 0 {
		return s
	}
	s.want = 1 + min(len(all), maxLines)
	s.head = v.heading(width, func(l *line) { l.add(term.Plain, "LOADS") })
	for _, w := range all[:s.want-1] {
		name := term.Clean(w.db) + " " + term.Clean(w.version)
		if len(v.st.Peers) > 0 {
			name += " on " + term.Clean(w.node)
		}
		l := v.line(width).add(term.Plain, "  "+name+" ").add(StateColors[w.on.State], string(w.on.State))
		if p := w.on.Progress; p != nil && p.Bytes > 0 {
			l.add(term.Plain, " "+progress(p, now))
		}
		if r := reason(&w.of, w.version, w.on); r != "" {
			l.add(term.Plain, term.Clean(r))
		}
		s.lines = append(s.lines, l.String())
	}
	return s
}

// progress returns the bar of a load with its figures.
func progress(p *status.Progress, now time.Time) string {
	text := term.Bar(p.BytesDone, p.Bytes)
	if p.BytesPerSecond > 0 {
		text += ", " + human.Size(int64(p.BytesPerSecond)) + " a second"
	}
	if left := p.ETA.Sub(now); !p.ETA.IsZero() && left > 0 {
		text += ", about " + human.Duration(left) + " left"
	}
	return text
}

// nodes returns the section of the nodes of a cluster.
func (v *View) nodes(width int) *section {
	s := new(section)
	if len(v.st.Peers) == 0 {
		return s
	}
	names := append([]string{v.st.Node}, slices.Sorted(maps.Keys(v.st.Peers))...)
	names = names[:min(len(names), maxLines)]
	shown := make([]string, len(names))
	for i, name := range names {
		shown[i] = term.Clean(name)
	}
	n := widest(shown, 4, width/3)
	s.want = 1 + len(names)
	s.head = v.heading(width, func(l *line) {
		l.cell(term.Plain, n, "NODE").cell(term.Plain, rateWidth, "REQ/S").cell(term.Plain, latencyWidth, "P99").cell(term.Plain, -12, "DISK FREE")
	})
	lags := v.st.Lags()
	for i, name := range names {
		p, here := v.st.Peers[name]
		if !here {
			p = status.Peer{Disk: v.st.Disk, Traffic: v.st.Traffic}
		}
		note, color := NodeNote(p, lags[name])
		free := "-"
		if p.Disk.Bytes > 0 {
			free = human.Size(p.Disk.Free)
		}
		l := v.line(width).add(term.Plain, "  ").cell(term.Plain, n, shown[i]).cell(term.Plain, rateWidth, human.Rate(p.Traffic.Requests))
		s.lines = append(s.lines, l.cell(term.Plain, latencyWidth, latency(p.Traffic.P99)).cell(term.Plain, -12, free).add(color, note).String())
	}
	return s
}

// NodeNote describes what is special about a node: that it does not answer, lacks the newest versions of some databases, or has little room.
func NodeNote(p status.Peer, lags []string) (string, term.Color) {
	if p.Error != "" {
		return "did not answer: " + term.Clean(p.Error), term.Red
	}
	switch {
	case len(lags) > 0:
		return "has not found the newest version of " + term.Clean(human.Some(lags)), term.Yellow
	case p.Disk.Low:
		return "the disk is nearly full", term.Yellow
	}
	return "", term.Plain
}

// events returns the section of the last events.
func (v *View) events(width int) *section {
	s := new(section)
	if len(v.st.Events) == 0 {
		return s
	}
	all := v.st.Events[:min(len(v.st.Events), maxLines)]
	s.want = 1 + len(all)
	s.head = v.heading(width, func(l *line) { l.add(term.Plain, "EVENTS") })
	for i := range all {
		e := &all[i]
		l := v.line(width).add(term.Plain, "  "+e.Time.UTC().Format("01-02 15:04:05")+" ")
		l.add(LevelColors[e.Level()], strings.ReplaceAll(term.Clean(string(e.Kind)), "_", " ")).add(term.Plain, " "+term.Clean(e.DB)+" "+term.Clean(e.Version))
		if e.Reason != "" {
			of := v.st.DBs[e.DB].Versions[e.Version]
			l.add(term.Plain, ": "+term.Clean(of.Brief(e.Reason, e.Version)))
		}
		s.lines = append(s.lines, l.String())
	}
	return s
}

// footer returns the last line: the keys, or the filter.
func (v *View) footer(width int) string {
	l := v.line(width)
	switch {
	case v.typing:
		return l.add(term.Bold, "/"+v.filter+"_").add(term.Dim, "  Enter keeps the filter, Esc removes it").String()
	case v.filter != "":
		l.add(term.Bold, "filter: "+v.filter).add(term.Dim, "  Esc removes it  ")
	}
	return l.add(term.Dim, "q quit  j/k select  s sort  r reverse  / filter").String()
}
