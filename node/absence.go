package node

import (
	"context"
	"fmt"
	"time"
)

// DefaultDBRemoveTimeout is how long a db is kept that the source does not list
// any more, unless Reloadable says otherwise.
const DefaultDBRemoveTimeout = time.Hour

// minAbsentLooks is how many looks at the source in this process have to miss a
// db before it is removed, however long ago the first one was: what one listing
// lacks, an unmounted directory or a store that lags, may be back in the next.
const minAbsentLooks = 3

// An absence is a db that the source does not list and that is served on.
type absence struct {
	since time.Time // of the first look that missed it, maybe before a restart
	looks int       // that have missed it, in this process
}

// present notes that the source lists a db. An absence may be on record from
// before a restart.
func (f *follower) present(d *db) {
	noted := f.absent[d.name] != nil
	if d.listed && !noted {
		return
	}
	d.setListed()
	delete(f.absent, d.name)
	f.health.setAbsent(d.name, "")
	if noted {
		d.log.Info("database is in the source again")
	}
}

// setListed records that the source lists a db: an absence that is on record, maybe
// from before a restart, is over.
func (d *db) setListed() {
	d.listed = true
	if err := d.node.o.Store.ClearAbsent(d.name); err != nil {
		d.log.Error("the end of a database's absence cannot be recorded", "error", err)
	}
}

// missing notes that the source does not list a db, and removes the db when that
// has been so for long enough.
func (f *follower) missing(d *db) {
	wake(d.unlisted)
	timeout := f.reloadable.Load().dbRemoveTimeout()
	a := f.absent[d.name]
	if a == nil {
		a = &absence{since: f.absentSince(d)}
		f.absent[d.name] = a
		d.log.Warn("database is not in the source any more; it is served on until it has been absent for long enough",
			"since", a.since, "db_remove_timeout", timeout)
	}
	a.looks++
	f.health.ok(d.name)
	f.health.setAbsent(d.name, fmt.Sprintf("%s is not in the source since %s; it is served on, and removed when it has been absent for %s",
		d.name, a.since.UTC().Format(time.RFC3339), timeout))
	if a.looks >= minAbsentLooks && time.Since(a.since) >= timeout {
		f.remove(d)
	}
}

// absentSince returns since when a db is absent, which is recorded so that a
// restart does not begin anew, nor take an old absence for a new one.
func (f *follower) absentSince(d *db) time.Time {
	since, err := f.o.Store.AbsentSince(d.name)
	if err != nil {
		d.log.Error("it is not known since when a database is absent", "error", err)
	}
	if !since.IsZero() {
		return since
	}
	since = time.Now()
	if err := f.o.Store.SetAbsent(d.name, since); err != nil {
		d.log.Error("the absence of a database cannot be recorded", "error", err)
	}
	return since
}

// databases lists the databases of the source. A source that lists none of those
// that are served here cannot be trusted: most likely it is not mounted.
func (n *Node) databases(ctx context.Context, timeout time.Duration, served []string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	names, err := n.o.Source.Databases(ctx)
	if err == nil && listsNone(names, served) {
		err = fmt.Errorf("%s lists none of the %d databases that are served here (%s, …): is it mounted?",
			n.o.SourceName, len(served), served[0])
	}
	if err != nil {
		n.sourceFailed(ctx, "", err)
		return nil, err
	}
	n.sourceRead(ctx, "", nil)
	return names, nil
}

// listsNone reports whether names lacks everything that is served.
func listsNone(names, served []string) bool {
	listed := known(names)
	for _, name := range served {
		if listed[name] {
			return false
		}
	}
	return len(served) > 0
}

// served returns the dbs that clients are answered from, or were before a
// restart, and that nobody has asked to remove.
func (n *Node) served() []string {
	var names []string
	for name, d := range n.dbs {
		if !d.leaving && d.view.Load().served {
			names = append(names, name)
		}
	}
	return names
}
