package node

import (
	"time"

	"sequins/version"
)

// After a switch, the files of the version in the source are compared with those that it was loaded from: copy tools write _SUCCESS first,
// writers pause, and people change files. The pauses between comparisons double, also across reloads of one name, so that a job
// that rewrites its files again and again does not load the node again and again. Every node does it: the files of a local source are
// its own, and a node that cannot list them does not keep the others from it.

const (
	leastCheckPause = time.Second
	// longCheckPause is the longest of the doubling pauses; those after it are dailyCheck.
	longCheckPause = time.Hour
	dailyCheck     = 24 * time.Hour
)

// check is when a database compares what it serves with the source.
type check struct {
	name  string // of the served version, in the source
	pause time.Duration
	due   time.Time // zero: never
	timer timer     // for due
	asked int64     // requests to refresh that have been answered, see Node.asked
}

// checkSwitched schedules the first comparison after a switch to a version.
func (ls *lister) checkSwitched(name string) {
	if name != ls.check.name {
		ls.check.name, ls.check.pause = name, 0
	}
	ls.checkLater()
}

// checkLater schedules the next comparison.
func (ls *lister) checkLater() {
	switch c := &ls.check; {
	case c.pause == 0:
		c.pause = max(leastCheckPause, ls.db.node.reloadable.Load().Settle)
	case c.pause < longCheckPause:
		c.pause = min(2*c.pause, longCheckPause)
	default:
		c.pause = dailyCheck
	}
	ls.check.due = time.Now().Add(ls.check.pause)
	ls.check.timer.set(&ls.db.bg, ls.check.due, ls.checkIfDue)
}

// checkIfDue compares what is served with the source, if that is due. If a listing runs, its end does it.
func (ls *lister) checkIfDue() {
	if ls.checking() && !ls.listing {
		ls.beginListing(true, true)
	}
}

// checking reports whether the next listing compares what is served. It waits until the versions can be listed.
func (ls *lister) checking() bool {
	c := &ls.check
	return ls.db.facts.Source == version.Known && !ls.db.node.health.IsFailing(ls.db.name) && !c.due.IsZero() && (!time.Now().Before(c.due) || c.asked != ls.db.node.asked.Load())
}
