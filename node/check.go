package node

import (
	"hash/fnv"
	"slices"
	"time"

	"sequins/version"
)

// After a switch, the files of the version in the source are compared with those that it was loaded from: copy tools write _SUCCESS first,
// writers pause, and people change files. The pauses between comparisons double, also across reloads of one name, so that a job
// that rewrites its files again and again does not load the node again and again. One node of a cluster does it; the others learn
// of another plan from it. A request to refresh compares on every node.

const (
	leastCheckPause = time.Second
	// longCheckPause is the pause before the last one of the doubling pauses; all others are dailyCheck.
	longCheckPause = time.Hour
	dailyCheck     = 24 * time.Hour
)

// check is when a database compares what it serves with the source.
type check struct {
	name  string // of the served version, in the source
	pause time.Duration
	due   time.Time // zero: never
	asked int64     // requests to refresh that have been answered, see Node.asked
}

// A checkDue reports that a comparison is due.
type checkDue struct{ at time.Time }

// tell implements message.
func (c checkDue) tell(d *db) {
	if !c.at.Equal(d.check.due) {
		return // replaced by another one
	}
	if !d.state.Read || !d.checksFor(d.live[d.state.Current]) {
		d.checkLater()
		return
	}
	d.startListing(true)
}

// checkSwitched schedules the first comparison after a switch.
func (d *db) checkSwitched(id string) {
	if name := version.Name(id); name != d.check.name {
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
	d.check.due = time.Now().Add(d.check.pause)
	d.tellAfter(d.check.pause, checkDue{d.check.due})
}

// checking reports whether the next listing compares what is served.
func (d *db) checking() bool {
	c := &d.check
	return !c.due.IsZero() && (!time.Now().Before(c.due) || c.asked != d.node.asked.Load())
}

// checksFor reports whether this node compares a version for all nodes that hold it: the first partition's owner with the least
// hash for this database.
func (d *db) checksFor(l *live) bool {
	if l == nil {
		return false
	}
	owners, self := l.Owners()
	if len(owners) == 0 || len(owners[0]) == 0 {
		return true
	}
	return self == slices.MinFunc(owners[0], func(a, b string) int {
		return slices.Compare(rendezvous(d.name, a), rendezvous(d.name, b))
	})
}

func rendezvous(db, addr string) []byte {
	h := fnv.New64a()
	_, _ = h.Write([]byte(db + "\x00" + addr)) // never fails
	return h.Sum(nil)
}
