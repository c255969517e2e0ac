package statuspage

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"sequins/internal/human"
	"sequins/observe/status"
)

func newPage(st *status.Status, only string, now time.Time) *page {
	p := &page{Status: st, Now: now, Events: st.Events}
	// What the node waits for of a db is in the row or on the page of that db.
	p.Waiting = slices.DeleteFunc(slices.Clone(st.Waiting), func(w status.Wait) bool { return w.DB != "" })
	if only != "" {
		p.ofDB(only)
		return p
	}
	p.Level, p.Headline, p.Runbook, p.Title = st.Level, st.Health, st.Runbook, titled(st.Level, st.Node)
	p.Findings = st.Details()
	p.Findings = p.Findings[:min(len(p.Findings), 20)]
	p.Names = slices.Sorted(maps.Keys(st.DBs))
	for _, name := range p.Names {
		db := st.DBs[name]
		level, _, _ := db.Health(st.Node)
		notes := slices.Concat(dbNotes(db, st.Node), versionNotes(db, st.Node, now))
		if len(notes) > 4 {
			notes = append(notes[:4], note{Level: "dim", Text: fmt.Sprintf("and %d more", len(notes)-4)})
		}
		r := dbRow{Name: name, Level: level, Notes: notes, Traffic: db.Asked()}
		if current := db.Current(st.Node); current != "" {
			r.Current = newVersionView(current, db.Versions[current], st.Node)
		}
		p.DBs = append(p.DBs, r)
	}
	slices.SortStableFunc(p.DBs, func(a, b dbRow) int { return cmp.Compare(urgency[b.Level], urgency[a.Level]) })
	p.Traffic = st.Traffic
	for _, peer := range st.Peers {
		p.Traffic.Add(peer.Traffic)
	}
	if len(st.Peers) > 0 {
		for _, m := range st.Members() {
			level, notes := nodeNotes(&m, now)
			p.Nodes = append(p.Nodes, nodeRow{m, level, notes})
		}
	}
	return p
}

// urgency is the order of levels: what somebody has to look at comes first.
var urgency = map[string]int{status.LevelBad: 2, status.LevelWarn: 1}

type dbRow struct {
	Name, Level string
	Notes       []note
	Traffic     status.Traffic
	Current     *versionView // what this node serves; nil if nothing
}

// dbNotes returns what there is to say of a db besides its versions.
func dbNotes(db status.DB, node string) (notes []note) {
	if db.Error != "" {
		notes = append(notes, note{Level: status.LevelWarn, Text: db.Error})
	}
	if db.Pin != nil {
		notes = append(notes, note{Level: status.LevelWarn, Text: db.Pin.String()})
	}
	switch v := db.Versions[db.Current(node)]; {
	case v.MissingPartitions > 0:
		notes = append(notes, note{Level: status.LevelBad, Text: human.Plural(v.MissingPartitions, "partition") + " on no node"})
	case v.UnderreplicatedPartitions > 0:
		notes = append(notes, note{Level: status.LevelWarn, Text: human.Plural(v.UnderreplicatedPartitions, "partition") + " on too few nodes"})
	}
	if t := db.Asked(); t.NearlyAllMiss() {
		notes = append(notes, note{Level: status.LevelWarn, Text: fmt.Sprintf("%.0f %% of the reads find no key", 100*t.MissShare())})
	}
	return notes
}

// versionNotes returns what there is to say of the versions of a db that are not served, and of errors: first of loads, then of the newest.
func versionNotes(db status.DB, node string, now time.Time) (notes []note) {
	current := db.Current(node)
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(db.Versions))) {
		v := db.Versions[name]
		n := v.Nodes[node]
		switch p := n.Progress; {
		case p != nil:
			notes = slices.Insert(notes, 0, note{busy, fmt.Sprintf("%s: loading, %d %%%s", name, percent(p.BytesDone, p.Bytes), left(p, now)), p})
		case n.Error != "":
			notes = append(notes, note{Level: status.LevelBad, Text: name + ": " + v.Brief(n.Error, name)})
		case name > current && n.State != status.Removing && n.Detail != "":
			notes = append(notes, note{Level: cmp.Or(stateLevel(n.State), "dim"), Text: name + ": " + n.Detail})
		}
	}
	return notes
}

type nodeRow struct {
	status.Peer
	Mark  string // the level that is shown
	Notes []note
}

// nodeNotes returns the state of a node: its own view of its health, and what it waits for.
func nodeNotes(p *status.Peer, now time.Time) (level string, notes []note) {
	if p.Error != "" {
		return status.LevelBad, []note{{Level: status.LevelBad, Text: "did not answer: " + p.Error}}
	}
	level = cmp.Or(p.Level, status.LevelNote)
	if p.Health != "" {
		notes = append(notes, note{Text: p.Health})
	}
	for _, w := range p.Waiting {
		n := note{Level: busy, Text: "waits for " + w.Line(now)}
		if w.Blocks {
			n.Level = status.LevelBad
		}
		notes = append(notes, n)
	}
	return level, notes
}
