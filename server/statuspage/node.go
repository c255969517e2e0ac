package statuspage

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"sequins/internal/human"
	"sequins/observe/status"
)

// maxNodes limits the rows of a table of nodes.
const maxNodes = 500

func newPage(st *status.Status, only string, now time.Time) page {
	p := page{Node: st.Node, Build: st.Build, Now: clock(now), Events: events(st.Events, st), Waiting: waiting(st.Waiting, now)}
	for _, db := range st.DBs {
		p.Refresh = p.Refresh || moving(db)
	}
	if only != "" {
		p.ofDB(st, only, now)
		return p
	}
	p.Level, p.Said, p.Title = st.Level, st.Health, titled(st.Level, st.Node)
	var findings []status.Finding
	p.Headline, p.Runbook, findings = st.Overview()
	for _, f := range findings[:min(len(findings), 20)] {
		f.Text = f.Line(now)
		p.Findings = append(p.Findings, f)
	}
	p.About = about(st, now)
	p.Names = slices.Sorted(maps.Keys(st.DBs))
	for _, name := range p.Names {
		p.DBs = append(p.DBs, newRow(name, st.DBs[name], st.Node, now))
	}
	slices.SortStableFunc(p.DBs, func(a, b dbRow) int { return cmp.Compare(urgency[b.Level], urgency[a.Level]) })
	p.Tiles = nodeTiles(st)
	p.Traffic = len(p.Tiles) > 0
	p.Nodes, p.MoreNodes = nodes(st, now)
	return p
}

// about describes the node in a few words each.
func about(st *status.Status, now time.Time) (all []string) {
	if st.Role == "router" {
		all = append(all, "a router, which holds no partitions")
	}
	if !st.StartedAt.IsZero() {
		all = append(all, "up for "+human.Duration(now.Sub(st.StartedAt)))
	}
	if st.Source != "" {
		all = append(all, "source "+st.Source)
	}
	if d := st.Disk; d.Bytes > 0 {
		all = append(all, human.Size(d.Free)+" of "+human.Size(d.Bytes)+" of disk free")
	}
	if z := st.ZooKeeper; z != nil && z.Connected {
		all = append(all, "connected to ZooKeeper")
	}
	return all
}

// waiting returns what the node waits for. What it waits for of a db is in the row or on the page of that db.
func waiting(all []status.Wait, now time.Time) (views []waitView) {
	for _, w := range all {
		if w.DB != "" {
			continue
		}
		v := waitView{Level: busy, What: w.What}
		if w.Blocks {
			v.Level = status.LevelBad
		}
		if !w.Since.IsZero() {
			v.Since = "for " + human.Duration(now.Sub(w.Since))
		}
		views = append(views, v)
	}
	return views
}

func events(all []status.Event, st *status.Status) (views []eventView) {
	for _, e := range all {
		v := st.DBs[e.DB].Versions[e.Version]
		views = append(views, eventView{ID: e.ID, Stamp: e.Time.UTC().Format(time.RFC3339), Time: clock(e.Time), DB: e.DB,
			Kind: strings.ReplaceAll(string(e.Kind), "_", " "), Level: e.Level(), Version: e.Version, Reason: v.Brief(e.Reason, e.Version)})
	}
	return views
}

// urgency is the order of levels: what somebody has to look at comes first.
var urgency = map[string]int{status.LevelBad: 2, status.LevelWarn: 1}

// dbRow is a row of the table of databases.
type dbRow struct {
	Name, Level, Version string
	Notes                []note
	Traffic              trafficView
	Age, Keys, Size      string
	Strip                *strip
	Partitions           string
}

func newRow(name string, db status.DB, node string, now time.Time) dbRow {
	level, _, _ := db.Health(node)
	notes := slices.Concat(dbNotes(db, node), versionNotes(db, node, now))
	r := dbRow{Name: name, Level: level, Version: db.Current(node), Notes: notes[:min(len(notes), 4)], Traffic: newTraffic(db.Asked())}
	if r.Version == "" {
		return r
	}
	v := db.Versions[r.Version]
	n := v.Nodes[node]
	if !n.LastModified.IsZero() {
		r.Age = human.Duration(now.Sub(n.LastModified))
	}
	r.Keys, r.Size = keys(&v), human.Size(bytesOf(&v))
	if v.NumPartitions > 0 {
		s := summaryStrip(&v)
		r.Strip, r.Partitions = &s, held(v.NumPartitions-v.MissingPartitions, v.NumPartitions)
	}
	return r
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

// versionNotes returns what there is to say of the versions of a db that are not served, and of errors, the newest first.
func versionNotes(db status.DB, node string, now time.Time) (notes []note) {
	current := db.Current(node)
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(db.Versions))) {
		v := db.Versions[name]
		n := v.Nodes[node]
		switch {
		case n.Progress != nil:
			notes = append(notes, note{busy, name + ": " + short(n.Progress, now), percent(n.Progress)})
		case n.Error != "":
			notes = append(notes, note{Level: status.LevelBad, Text: name + ": " + v.Brief(n.Error, name)})
		case name > current && n.State != status.Removing && n.Detail != "":
			notes = append(notes, note{Level: cmp.Or(stateLevel(n.State), "dim"), Text: name + ": " + n.Detail})
		}
	}
	return notes
}

// short describes the progress of a load in a few words.
func short(p *status.Progress, now time.Time) string {
	s := "loading, " + percent(p) + " %"
	if left := p.ETA.Sub(now); !p.ETA.IsZero() && left > 0 {
		s += ", about " + human.Duration(left) + " left"
	}
	return s
}

// held returns a fraction in words: all 8, or 7 of 8.
func held(n, all int) string {
	if n == all {
		return human.Count(int64(all))
	}
	return human.Count(int64(n)) + " of " + human.Count(int64(all))
}

// nodeRow is a row of the table of nodes.
type nodeRow struct {
	Name, Level           string
	Self                  bool
	Notes                 []note
	Place                 string // zone, shard and build
	Up, Blocks, Rate, P99 string
	Free                  *note
}

// nodes returns the table of the nodes of a cluster.
func nodes(st *status.Status, now time.Time) (rows []nodeRow, more string) {
	if len(st.Peers) == 0 {
		return nil, ""
	}
	members := st.Members()
	if n := len(members) - maxNodes; n > 0 {
		members, more = members[:maxNodes], human.Plural(n, "more node")+" not shown"
	}
	lags := st.Lags()
	for _, p := range members {
		r := nodeRow{Name: p.Addr, Self: p.Addr == st.Node, Place: place(&p)}
		r.Level, r.Notes = nodeNotes(&p, lags[p.Addr], now)
		t := newTraffic(p.Traffic)
		r.Rate, r.P99 = t.Rate, t.P99
		if !p.StartedAt.IsZero() {
			r.Up = human.Duration(now.Sub(p.StartedAt))
		}
		if d := p.Disk; d.Bytes > 0 {
			r.Blocks = human.Size(d.Blocks)
			r.Free = &note{Text: fmt.Sprintf("%s (%d %%)", human.Size(d.Free), int(100*float64(d.Free)/float64(d.Bytes)))}
			if d.Low {
				r.Free.Level = status.LevelWarn
			}
		}
		rows = append(rows, r)
	}
	return rows, more
}

// place returns the zone, the shard and the build of a node.
func place(p *status.Peer) string {
	parts := []string{p.Zone, "", p.Build}
	if parts[1] = p.ShardID; p.ShardID != "" && !strings.HasPrefix(p.ShardID, "shard") {
		parts[1] = "shard " + p.ShardID
	}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), " · ")
}

// nodeNotes returns the state of a node: its own view of its health, what it waits for, and what it does not know yet.
func nodeNotes(p *status.Peer, lags []string, now time.Time) (level string, notes []note) {
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
	if len(lags) > 0 {
		notes = append(notes, note{Level: status.LevelWarn, Text: "has not found the newest version of " + human.Some(lags)})
	}
	return level, notes
}
