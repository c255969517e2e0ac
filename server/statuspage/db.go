package statuspage

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"sequins/internal/human"
	"sequins/observe/status"
)

// dbView is the page of a database.
type dbView struct {
	Name     string
	Versions []versionView
	Holders  []holdersView
	HotKeys  []hotView
}

type hotView struct{ Name, Summary string }

type versionView struct {
	Name, State, Level string
	Current            bool
	Summary            string
	Details, Errors    []string
	Percent, Progress  string // of the loads of all nodes; "" if there are none
	Diff               string // the URL of the differences from the current version
	Path               string
}

// ofDB fills in the page of one db.
func (p *page) ofDB(st *status.Status, name string, now time.Time) {
	db := st.DBs[name]
	p.Level, p.Headline, p.Runbook = db.Health(st.Node)
	p.Title, p.Names, p.Events = titled(p.Level, name), []string{name}, events(db.Events, st)
	for _, n := range dbNotes(db, st.Node) {
		p.Findings = append(p.Findings, status.Finding{Level: n.Level, Text: n.Text})
	}
	p.One = &dbView{Name: name}
	for _, k := range db.HotKeys {
		p.One.HotKeys = append(p.One.HotKeys, newHotView(k))
	}
	current := db.Current(st.Node)
	for _, version := range slices.Backward(slices.Sorted(maps.Keys(db.Versions))) {
		v := db.Versions[version]
		view := newVersionView(version, &v, st.Node, now)
		if current != "" && v.Nodes[st.Node].State == status.Held {
			view.Diff = (&url.URL{Path: "/" + name, RawQuery: url.Values{"diff": {current + ".." + version}}.Encode()}).String()
		}
		p.One.Versions = append(p.One.Versions, view)
		s := v.Nodes[st.Node].State
		if v.NumPartitions > 0 && (version == current || s == status.Building || s == status.Held) { // of others it does not matter
			p.One.Holders = append(p.One.Holders, newHolders(version, &v, version == current || current == ""))
		}
	}
	p.Tiles = dbTiles(db, st.Node, now)
}

// moving reports whether a db is likely to change within seconds.
func moving(db status.DB) bool {
	for _, v := range db.Versions {
		for _, n := range v.Nodes {
			if n.State == status.Building {
				return true
			}
		}
	}
	return false
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

// dbTiles are figures of the current version and of the requests for a db.
func dbTiles(db status.DB, node string, now time.Time) []tile {
	tiles := newTraffic(db.Asked()).tiles()
	current := db.Current(node)
	if current == "" {
		return tiles
	}
	v := db.Versions[current]
	n := v.Nodes[node]
	if !n.LastModified.IsZero() {
		tiles = append(tiles, tile{Name: "Age of the data", Value: human.Duration(now.Sub(n.LastModified))})
	}
	if !n.ActiveAt.IsZero() {
		tiles = append(tiles, tile{Name: "Active for", Value: human.Duration(now.Sub(n.ActiveAt))})
	}
	tiles = append(tiles, tile{Name: "Keys", Value: keys(&v)})
	tiles = append(tiles, tile{Name: "On disk", Value: human.Size(bytesOf(&v))}, tile{Name: "Partitions", Value: human.Count(int64(v.NumPartitions))})
	if n.Unchanged > 0 {
		tiles = append(tiles, tile{"Not changed", human.Count(int64(n.Unchanged)), "partitions"})
	}
	return tiles
}

func newVersionView(name string, v *status.Version, node string, now time.Time) versionView {
	n := v.Nodes[node]
	view := versionView{
		Name: name, State: string(n.State), Level: stateLevel(n.State), Current: n.Current, Path: v.Path, Summary: summary(v, n, now),
		Details: saying(v, func(n status.OnNode) string { return n.Detail }),
		Errors:  saying(v, func(n status.OnNode) string { return v.Brief(n.Error, name) }),
	}
	view.Details = slices.DeleteFunc(view.Details, func(s string) bool { return s == "loading" })
	if p := loads(v); p != nil {
		view.Percent, view.Progress = percent(p), progress(p, now)
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

// summary describes a version on a node and on the others in one line.
func summary(v *status.Version, n status.OnNode, now time.Time) string {
	var parts []string
	if !n.ActiveAt.IsZero() {
		parts = append(parts, "active for "+human.Duration(now.Sub(n.ActiveAt)))
	} else if !n.CreatedAt.IsZero() {
		parts = append(parts, "found "+human.Duration(now.Sub(n.CreatedAt))+" ago")
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
func saying(v *status.Version, of func(status.OnNode) string) (lines []string) {
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

// loads returns the progress of all nodes that load a version, nil if none does.
func loads(v *status.Version) *status.Progress {
	var sum *status.Progress
	for _, n := range v.Nodes {
		p := n.Progress
		if p == nil {
			continue
		}
		if sum == nil {
			sum = new(status.Progress)
		}
		sum.Files, sum.FilesDone = sum.Files+p.Files, sum.FilesDone+p.FilesDone
		sum.Bytes, sum.BytesDone = sum.Bytes+p.Bytes, sum.BytesDone+p.BytesDone
		sum.Records, sum.RecordsPerSecond = sum.Records+p.Records, sum.RecordsPerSecond+p.RecordsPerSecond
		if p.ETA.After(sum.ETA) {
			sum.ETA = p.ETA
		}
	}
	return sum
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

// keys returns the number of keys of a version, exactly where one node holds all.
func keys(v *status.Version) string {
	n, exact := v.Records()
	if exact {
		return human.Count(n)
	}
	return "≈ " + human.Count(n)
}

// bytesOf returns the size of a version on all nodes.
func bytesOf(v *status.Version) (sum int64) {
	for _, n := range v.Nodes {
		sum += n.Bytes
	}
	return sum
}
