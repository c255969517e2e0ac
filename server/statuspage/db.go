package statuspage

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"sequins/internal/human"
	"sequins/observe/status"
)

type dbView struct {
	Name     string
	Versions []*versionView
	Current  *versionView // what this node serves; nil if nothing
	Holders  []holdersView
}

type versionView struct {
	Name string
	status.Version
	On              status.OnNode // this node
	Summary         string
	Details, Errors []string
	Diff            string // the URL of the differences from the current version
}

func newVersionView(name string, v status.Version, node string) *versionView {
	return &versionView{Name: name, Version: v, On: v.Nodes[node]}
}

// Keys returns the number of keys of a version, exactly where one node holds all.
func (v *versionView) Keys() string {
	n, exact := v.Records()
	if exact {
		return human.Count(n)
	}
	return "≈ " + human.Count(n)
}

// Bytes returns the size of a version on all nodes.
func (v *versionView) Bytes() (sum int64) {
	for _, n := range v.Nodes {
		sum += n.Bytes
	}
	return sum
}

// Held returns how many partitions are on any node.
func (v *versionView) Held() int { return v.NumPartitions - v.MissingPartitions }

func (p *page) ofDB(name string) {
	st := p.Status
	db := st.DBs[name]
	p.Level, p.Headline, p.Runbook = db.Health(st.Node)
	p.Title, p.Names, p.Events, p.Traffic = titled(p.Level, name), []string{name}, db.Events, db.Asked()
	for _, n := range dbNotes(db, st.Node) {
		p.Findings = append(p.Findings, status.Finding{Level: n.Level, Text: n.Text})
	}
	p.Findings = append(p.Findings, db.Notes()...)
	p.One = &dbView{Name: name}
	current := db.Current(st.Node)
	for _, version := range slices.Backward(slices.Sorted(maps.Keys(db.Versions))) {
		v := newVersionView(version, db.Versions[version], st.Node)
		v.Summary = v.summary(p)
		v.Details = v.saying(func(n status.OnNode) string { return n.Detail })
		v.Errors = v.saying(func(n status.OnNode) string { return v.Brief(n.Error, v.Name) })
		s := v.On.State
		if current != "" && s == status.Held {
			v.Diff = (&url.URL{Path: "/" + name, RawQuery: url.Values{"diff": {current + ".." + version}}.Encode()}).String()
		}
		p.One.Versions = append(p.One.Versions, v)
		if version == current {
			p.One.Current = v
		}
		if v.NumPartitions > 0 && (version == current || s == status.Building || s == status.Held) { // of others it does not matter
			p.One.Holders = append(p.One.Holders, newHolders(v, version == current || current == ""))
		}
	}
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

// summary describes a version on this node and on the others in one line.
func (v *versionView) summary(p *page) string {
	var parts []string
	if !v.On.ActiveAt.IsZero() {
		parts = append(parts, "active for "+p.Ago(v.On.ActiveAt))
	} else if !v.On.CreatedAt.IsZero() {
		parts = append(parts, "found "+p.Ago(v.On.CreatedAt)+" ago")
	}
	if len(v.Nodes) < 2 {
		return strings.Join(parts, ", ")
	}
	states, serving := make(map[string]int), 0
	for _, other := range v.Nodes {
		states[string(other.State)]++
		if other.Current {
			serving++
		}
	}
	for _, s := range slices.Sorted(maps.Keys(states)) {
		parts = append(parts, s+" on "+human.Plural(states[s], "node"))
	}
	if serving > 0 && serving < len(v.Nodes) {
		parts = append(parts, fmt.Sprintf("current on %d of %d", serving, len(v.Nodes)))
	}
	return strings.Join(parts, ", ")
}

// saying returns what nodes say of a version, with the nodes that say it where not all do.
func (v *versionView) saying(of func(status.OnNode) string) (lines []string) {
	by := make(map[string][]string)
	for _, name := range slices.Sorted(maps.Keys(v.Nodes)) {
		if text := of(v.Nodes[name]); text != "" {
			by[text] = append(by[text], name)
		}
	}
	for _, text := range slices.Sorted(maps.Keys(by)) {
		if len(by[text]) < len(v.Nodes) {
			text = human.Some(by[text]) + ": " + text
		}
		lines = append(lines, text)
	}
	return lines[:min(len(lines), 10)]
}
