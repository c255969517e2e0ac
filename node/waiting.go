package node

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"sequins/internal/human"
	"sequins/load/loadproc"
	"sequins/observe/status"
	"sequins/version"
)

// wholeTimeout is how long a started node waits for other nodes with partitions that no node has yet,
// as when all nodes start together, before it is ready without them.
const wholeTimeout = 10 * time.Second

// waits returns what a db waits for.
func (v *view) waits() []status.Wait {
	current := v.facts.Current.Name
	var all []status.Wait
	w, loads := v.loadWait()
	if w.Blocks = v.atStart && current == "" && (v.served() || !v.tried); loads || w.Blocks {
		all = append(all, w)
	}
	if v.atStart && current != "" && !v.whole && time.Since(v.node.admission) < wholeTimeout {
		all = append(all, status.Wait{For: status.WaitForNodes, DB: v.db, Version: current, Since: seconds(v.node.admission), Blocks: true,
			What: "nodes that hold partitions of " + v.db + " which no node has that is known yet"})
	}
	return all
}

// loadWait returns what a db waits for to serve a version, or a newer one. loads reports whether there is one.
func (v *view) loadWait() (w status.Wait, loads bool) {
	w = status.Wait{For: status.WaitForLoad, DB: v.db, Since: seconds(v.node.admission)}
	next := v.next()
	if next == nil {
		if !v.read() {
			w.For = status.WaitForSource
		}
		w.What = "a version of " + v.db + ": " + cmp.Or(v.problem(), "its versions to be listed")
		return w, false
	}
	w.Version, w.Since = next.Name, seconds(next.known.found)
	if next.loading == nil && next.status == version.Prepared {
		w.For = status.WaitForNodes
	}
	var how string
	if w.Done, how = progressOf(next.loading); how == "" {
		how = v.detail(next)
	}
	if reason := next.Failure.Reason; reason != "" {
		how = strings.TrimPrefix(how+"; its last load has failed: "+reason, "; ")
	}
	w.What = fmt.Sprintf("version %s of %s: %s", w.Version, v.db, cmp.Or(how, "not begun"))
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
