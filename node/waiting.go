package node

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"sequins/internal/human"
	"sequins/load/loadproc"
	"sequins/observe/status"
	"sequins/version"
)

// maxWaits limits what is listed of what the node waits for.
const maxWaits = 100

// waits returns what the node waits for, what keeps it from being ready first.
func (n *Node) waits() []status.Wait {
	if !n.admitted.Load() {
		w, joining := status.Wait{}, false
		if n.o.Joining != nil {
			w, joining = n.o.Joining()
		}
		if !joining {
			w = status.Wait{For: status.WaitForDisk, What: "what is on its disk to be opened", Since: seconds(n.started)}
		}
		w.Blocks = true
		return []status.Wait{w}
	}
	looked, listed := n.looked.Load(), n.listed.Load() // before the catalog, which they describe
	dbs := *n.catalog.Load()
	var all []status.Wait
	r := n.health.Report()
	switch w := (status.Wait{For: status.WaitForSource, Since: seconds(n.admission)}); {
	case !looked:
		w.What, w.Blocks = "the source to be listed for the first time: "+n.o.SourceName, true
		all = append(all, w)
	case r.Err != nil: // which keeps a node from being ready that knows no databases, from the source or elsewhere
		w.What, w.Since, w.Blocks = fmt.Sprintf("the source, which cannot be read: %v", r.Err), seconds(r.Since), !listed && len(dbs) == 0
		all = append(all, w)
	}
	for _, name := range slices.Sorted(maps.Keys(dbs)) {
		all = append(all, dbs[name].waits()...)
	}
	all = slices.Concat(status.Blocking(all), slices.DeleteFunc(all, func(w status.Wait) bool { return w.Blocks }))
	return all[:min(len(all), maxWaits)]
}

// waits returns what a db waits for.
func (d *db) waits() []status.Wait {
	v := d.view.Load()
	current := v.facts.Current.Name
	var all []status.Wait
	w, loads := d.loadWait(v)
	if w.Blocks = d.followed.atStart && current == "" && (v.served() || !v.tried); loads || w.Blocks {
		all = append(all, w)
	}
	if d.followed.atStart && current != "" && !v.whole && time.Since(d.node.admission) < wholeTimeout {
		all = append(all, status.Wait{For: status.WaitForNodes, DB: d.name, Version: current, Since: seconds(d.node.admission), Blocks: true,
			What: "nodes that hold partitions of " + d.name + " which no node has that is known yet"})
	}
	return all
}

// loadWait returns what a db waits for to serve a version, or a newer one. loads reports whether there is one.
func (d *db) loadWait(v *view) (w status.Wait, loads bool) {
	w = status.Wait{For: status.WaitForLoad, DB: d.name, Since: seconds(d.node.admission)}
	next := v.next()
	if next == nil {
		if !v.read() {
			w.For = status.WaitForSource
		}
		w.What = "a version of " + d.name + ": " + cmp.Or(v.problem(), "its versions to be listed")
		return w, false
	}
	w.Version, w.Since = next.Name, seconds(next.known.found)
	if next.loading == nil && next.status == version.Prepared {
		w.For = status.WaitForNodes
	}
	var how string
	if w.Done, how = progressOf(next.loading); how == "" {
		how = d.detail(v, next)
	}
	if reason := next.Failure.Reason; reason != "" {
		how = strings.TrimPrefix(how+"; its last load has failed: "+reason, "; ")
	}
	w.What = fmt.Sprintf("version %s of %s: %s", w.Version, d.name, cmp.Or(how, "not begun"))
	return w, true
}

// next returns the version that the db waits for, the newest that is loaded, ready or to be tried again; nil if there is none. A version
// that the gate holds waits for people.
func (v *view) next() *versionView {
	current := v.facts.Current
	for i, e := range slices.Backward(v.versions) {
		if e.Input != current && e.Name >= current.Name && e.Removal == version.Staying && e.Verdict != version.Held && (e.Failure.Reason == "" || current.Name == "") {
			return &v.versions[i]
		}
	}
	return nil
}

// progressOf describes a load that reads; "" if it does not.
func progressOf(l *loading) (done float64, how string) {
	if l == nil || l.stage.Load() != copying {
		return 0, ""
	}
	now := time.Now()
	p := loadproc.Progress(l.snapshot(), now)
	if p == nil || p.Bytes <= 0 {
		return 0, ""
	}
	done = min(1, float64(p.BytesDone)/float64(p.Bytes))
	how = fmt.Sprintf("loading, %.0f %%", 100*done)
	if left := p.ETA.Sub(now); left > 0 {
		how += ", about " + human.Duration(left) + " left"
	}
	return done, how
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
