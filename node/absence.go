package node

import (
	"context"
	"fmt"
	"time"
)

// DefaultDBRemoveTimeout is the default of Reloadable.DBRemoveTimeout: how long a db is kept after it
// has disappeared from the source.
const DefaultDBRemoveTimeout = time.Hour

// minAbsentLooks is how many listings in this process must lack a db before it is removed, however long
// it has been absent: an unmounted directory or an eventually consistent store may list it again.
const minAbsentLooks = 3

// An absence describes a db that the source does not list but that is still served.
type absence struct {
	since time.Time // of the first listing that lacked it, maybe before a restart
	looks int       // listings of this process that lacked it
}

// present records that the source lists a db, which ends an absence.
func (f *follower) present(d *db) {
	noted := f.absent[d.name] != nil
	if d.listed && !noted {
		return
	}
	d.setListed()
	delete(f.absent, d.name)
	f.health.SetAbsent(d.name, "")
	if noted {
		d.log.Info("database is in the source again")
	}
}

// setListed records that the source lists a db. It removes a stored absence, which may be from before a
// restart.
func (d *db) setListed() {
	d.listed = true
	if err := d.node.o.Store.ClearAbsent(d.name); err != nil {
		d.log.Error("the end of a database's absence cannot be recorded", "error", err)
	}
}

// missing records that the source does not list a db, and removes the db if its absence has lasted long
// enough.
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
	f.health.OK(d.name)
	f.health.SetAbsent(d.name, fmt.Sprintf("%s is not in the source since %s; it is served on, and removed when it has been absent for %s",
		d.name, a.since.UTC().Format(time.RFC3339), timeout))
	if a.looks >= minAbsentLooks && time.Since(a.since) >= timeout {
		f.remove(d)
	}
}

// absentSince returns the time since which a db is absent. The time is stored, so that it survives a
// restart.
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

// databases lists the databases of the source. A source that lists none of the served databases is an
// error: most likely it is not mounted.
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

// listsNone reports whether names contains none of the served dbs.
func listsNone(names, served []string) bool {
	listed := known(names)
	for _, name := range served {
		if listed[name] {
			return false
		}
	}
	return len(served) > 0
}

// served returns the dbs that are served, or were before a restart, without those being removed.
func (n *Node) served() []string {
	var names []string
	for name, d := range n.dbs {
		if !d.leaving && d.view.Load().served {
			names = append(names, name)
		}
	}
	return names
}

// known returns a set of names.
func known(names []string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, name := range names {
		m[name] = true
	}
	return m
}
