package node

import (
	"context"
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
	name   string // of the served version, in the source
	pause  time.Duration
	due    time.Time          // zero: never
	asked  int64              // requests to refresh that have been answered, see Node.asked
	cancel context.CancelFunc // of the wait for due; nil before the first one
}

// A checkDue reports that a comparison is due.
type checkDue struct{ at time.Time }

// tell implements message.
func (c checkDue) tell(d *db) {
	if !c.at.Equal(d.check.due) {
		return // replaced by another one
	}
	if d.checking() {
		d.startCheck() // otherwise the end of the next listing does it
	}
}

// checkSwitched schedules the first comparison after a switch to a version.
func (d *db) checkSwitched(name string) {
	if name != d.check.name {
		d.check.name, d.check.pause = name, 0
	}
	d.checkLater()
}

// checkLater schedules the next comparison.
func (d *db) checkLater() {
	switch c := &d.check; {
	case c.pause == 0:
		c.pause = max(leastCheckPause, d.node.reloadable.Load().Settle)
	case c.pause < longCheckPause:
		c.pause = min(2*c.pause, longCheckPause)
	default:
		c.pause = dailyCheck
	}
	if d.check.cancel != nil {
		d.check.cancel()
	}
	due := time.Now().Add(d.check.pause)
	d.check.due, d.check.cancel = due, d.tellAt(due, checkDue{due})
}

// checking reports whether the next listing compares what is served. It waits until the versions can be listed.
func (d *db) checking() bool {
	c := &d.check
	return d.facts.Source == version.Known && !d.node.health.IsFailing(d.name) && !c.due.IsZero() && (!time.Now().Before(c.due) || c.asked != d.node.asked.Load())
}
