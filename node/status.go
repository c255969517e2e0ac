package node

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"sequins/observe/status"
)

// maxWaits limits what is listed of what the node waits for.
const maxWaits = 100

// Status implements server.Catalog.
func (n *Node) Status() status.Status {
	r := n.health.Report()
	s := status.Status{
		DBs:     make(map[string]status.DB),
		ShardID: n.o.ShardID(), Node: n.o.Name, Build: n.o.Build,
		StartedAt: seconds(n.started), Source: n.o.SourceName,
		SourceErrorSince: seconds(r.Since), RefreshedAt: seconds(r.Refreshed), Warnings: r.Warnings,
	}
	if r.Err != nil {
		s.SourceError = r.Err.Error()
	}
	if disk := n.o.Metrics.Process.Disk(); disk != nil {
		s.Disk = *disk
	}
	s.Waiting = n.waits()
	if n.settings != nil {
		s.Differences = n.settings.Differences()
	}
	for _, describe := range n.o.Describe {
		describe(&s)
	}
	var problems []string // of the versions
	for name, d := range *n.follower.catalog.Load() {
		v := d.view.Load()
		problems = append(problems, v.problems()...)
		db := v.status()
		if f, failing := r.DBs[name]; failing {
			db.Error = fmt.Sprintf("its versions cannot be listed since %s: %v", f.Since.UTC().Format(time.RFC3339), f.Err)
		}
		s.DBs[name] = db
	}
	slices.Sort(problems)
	s.Problems = slices.Concat(s.Problems, slices.Compact(problems))
	return s
}

// Events implements server.Catalog.
func (n *Node) Events(db string) []status.Event { return n.o.Events.Last(db) }

// Ready implements server.Catalog.
func (n *Node) Ready(db string) (bool, string) {
	if db == "" || n.admitted().IsZero() {
		return unready(n.waits(), time.Now())
	}
	d := (*n.follower.catalog.Load())[db]
	if d == nil {
		return false, "there is no database " + db
	}
	v := d.view.Load()
	if v.facts.Current.Name != "" {
		return true, ""
	}
	w, _ := v.loadWait()
	w.Blocks = true
	return unready([]status.Wait{w}, time.Now())
}

// startWait returns what a node that starts waits for.
func (n *Node) startWait() status.Wait {
	if n.o.Joining != nil {
		if w := n.o.Joining(); w != nil {
			return *w
		}
	}
	return status.Wait{For: status.WaitForDisk, What: "what is on its disk to be opened", Since: seconds(n.started)}
}

// waits returns what the node waits for, what keeps it from being ready first.
func (n *Node) waits() []status.Wait {
	admitted := n.admitted()
	if admitted.IsZero() {
		w := n.startWait()
		w.Blocks = true
		return []status.Wait{w}
	}
	looked, listed := n.looked.Load(), n.listed.Load() // before the catalog, which they describe
	dbs := *n.follower.catalog.Load()
	var all []status.Wait
	r := n.health.Report()
	switch w := (status.Wait{For: status.WaitForSource, Since: seconds(admitted)}); {
	case !n.joined.Load():
		w = n.startWait()
		w.Blocks = len(dbs) == 0
		all = append(all, w)
	case !looked:
		w.What, w.Blocks = "the source to be listed for the first time: "+n.o.SourceName, true
		all = append(all, w)
	case r.Err != nil: // which keeps a node from being ready that knows no databases, from the source or elsewhere
		w.What, w.Since, w.Blocks = fmt.Sprintf("the source, which cannot be read: %v", r.Err), seconds(r.Since), !listed && len(dbs) == 0
		all = append(all, w)
	}
	for _, name := range slices.Sorted(maps.Keys(dbs)) {
		all = append(all, dbs[name].view.Load().waits()...)
	}
	all = slices.Concat(status.Blocking(all), slices.DeleteFunc(all, func(w status.Wait) bool { return w.Blocks }))
	return all[:min(len(all), maxWaits)]
}

// unready returns why the node is not ready, in one line: the first things that it waits for.
func unready(all []status.Wait, now time.Time) (ok bool, reason string) {
	const most = 3
	blocking := status.Blocking(all)
	if len(blocking) == 0 {
		return true, ""
	}
	var lines []string
	for _, w := range blocking[:min(len(blocking), most)] {
		lines = append(lines, w.Line(now))
	}
	if more := len(blocking) - most; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return false, "it waits for " + strings.Join(lines, "; ")
}
