package node

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"sequins/source"
)

const (
	// startTimeout limits the first listing of the source, and the first listing of the versions of
	// each db. Until then the node serves what it served before, and is not ready.
	startTimeout = 15 * time.Second
	// listTimeout limits one listing of the source.
	listTimeout = 2 * time.Minute
	// maxListings is the number of databases whose versions are listed in parallel.
	maxListings = 32
	// minBackoff and maxBackoff limit the pause before an unreadable source is listed again.
	minBackoff = time.Second
	maxBackoff = 5 * time.Minute
)

// start joins the cluster and opens the versions on disk. It does not wait for the source.
func (n *Node) start(ctx context.Context) error {
	if err := n.o.Cluster.Join(ctx); err != nil {
		return err
	}
	if err := n.o.Store.Leftovers(); err != nil {
		n.log.Warn("the local store could not be cleaned up", "error", err)
	}
	local, err := n.o.Store.Databases()
	if err != nil {
		return fmt.Errorf("reading the local store: %w", err)
	}
	defer collectLater()()
	for _, name := range local {
		n.add(ctx, name, false)
	}
	for _, d := range n.dbs {
		<-d.begun
	}
	n.publish()
	return nil
}

// add creates a db and starts its goroutine. listed reports whether the source lists the db; then its
// versions are listed.
func (n *Node) add(ctx context.Context, name string, listed bool) {
	d := newDB(ctx, n, name)
	d.atStart = !n.looked.Load()
	if listed {
		d.setListed()
	}
	n.dbs[name] = d
	n.following.Go(func() { d.run(ctx, listed) })
}

// follow lists the source at the start, at each refresh, and after a pause if it could not be read.
func (n *Node) follow(ctx context.Context) {
	f := follower{Node: n, found: make(chan databases), absent: make(map[string]*absence)}
	f.look(ctx, true)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Reset(f.wait())
		select {
		case <-ctx.Done():
			return
		case l := <-f.found:
			f.take(ctx, l)
		case d := <-n.left:
			f.forget(d)
		case <-n.applied:
			f.full = n.after(n.reloadable.Load().RefreshPeriod)
		case <-n.o.Cluster.Changes():
			for _, d := range n.dbs {
				wake(d.survey)
			}
		case <-n.health.Failed():
			f.retryLater()
		case <-n.refresh:
			f.look(ctx, true)
		case <-timer.C:
			f.look(ctx, !f.full.IsZero() && !time.Now().Before(f.full))
		}
	}
}

// A follower is the state of follow.
type follower struct {
	*Node
	full  time.Time // time of the next refresh; zero: only on request
	retry time.Time // time of the next retry; zero: nothing has failed
	// missed reports that dbs were found in the source but not added, because their previous instances
	// were still being removed.
	missed bool
	absent map[string]*absence // by name

	looking bool           // a listing of the databases is running
	again   bool           // list again afterwards, for a refresh
	found   chan databases // receives the result of a listing
}

// databases is the result of a listing of the source.
type databases struct {
	names []string
	err   error
	full  bool // see look
}

// after returns the time in d from now; zero (never) if d is 0 or less.
func (n *Node) after(d time.Duration) time.Time {
	if d <= 0 {
		return time.Time{}
	}
	return time.Now().Add(d)
}

// wait returns the time until something is due.
func (f *follower) wait() time.Duration {
	next := f.full
	if next.IsZero() || !f.retry.IsZero() && f.retry.Before(next) {
		next = f.retry
	}
	if next.IsZero() {
		return 24 * time.Hour
	}
	return time.Until(next)
}

// retryLater schedules a retry, with growing pauses.
func (f *follower) retryLater() {
	since := f.health.FailingSince()
	if since.IsZero() || !f.retry.IsZero() {
		return
	}
	d := min(max(time.Since(since), minBackoff), maxBackoff)
	d += rand.N(d / 8)
	f.retry = time.Now().Add(d)
	f.log.Warn("the source will be tried again", "in", d.Round(time.Millisecond), "unreachable_since", since)
}

// look starts listing the databases in the background; take receives the result. A refresh (full) lists
// the versions of all databases, otherwise only failed listings of versions are repeated. A refresh
// during a running listing causes another one.
func (f *follower) look(ctx context.Context, full bool) {
	f.retry = time.Time{}
	if full {
		f.full = f.after(f.reloadable.Load().RefreshPeriod)
	}
	if f.looking {
		f.again = f.again || full
		return
	}
	f.looking = true
	full = full || f.health.RootFailing() // the refresh that failed is repeated
	timeout, served := listTimeout, f.served()
	if !f.looked.Load() {
		timeout = startTimeout
	}
	f.following.Go(func() {
		names, err := f.databases(ctx, timeout, served)
		select {
		case f.found <- databases{names, err, full}:
		case <-ctx.Done():
		}
	})
}

// take processes the result of a listing.
func (f *follower) take(ctx context.Context, found databases) {
	f.looking = false
	if found.err == nil {
		f.update(ctx, found)
		f.listed.Store(true)
	} else {
		for _, d := range f.dbs {
			wake(d.unlisted)
		}
	}
	f.looked.Store(true)
	if f.again {
		f.again = false
		f.look(ctx, true)
	}
}

// update adds and removes databases, and lists the versions of the others.
func (f *follower) update(ctx context.Context, found databases) {
	there := make(map[string]bool, len(found.names))
	for _, name := range found.names {
		there[name] = true
		d := f.dbs[name]
		if d == nil {
			f.log.Info("database found", "db", name)
			f.add(ctx, name, true)
			continue
		}
		back := f.absent[name] != nil || !d.listed
		switch {
		case d.leaving:
			f.missed = true
		case found.full || back || f.health.IsFailing(name):
			f.present(d)
			wake(d.refresh)
		}
	}
	for name, d := range f.dbs {
		switch {
		case there[name]:
		case d.leaving:
			f.remove(d)
		default:
			f.missing(d)
		}
	}
	f.publish()
}

// remove starts or retries the removal of a db that is not in the source any more.
func (f *follower) remove(d *db) {
	if !d.leaving {
		d.leaving = true
		d.log.Warn("database removed: it has been absent from the source for long enough")
	}
	f.health.OK(d.name)
	wake(d.gone)
}

// forget removes the state of a db whose removal is complete.
func (f *follower) forget(d *db) {
	delete(f.dbs, d.name)
	delete(f.absent, d.name)
	f.o.Metrics.Load.Forget(d.name)
	f.health.Forget(d.name)
	f.success.Delete(d.name)
	if err := f.o.Store.ForgetServed(d.name); err != nil {
		d.log.Error("what is left of a database cannot be removed", "error", err)
	}
	if f.missed && !f.anyLeaving() {
		f.missed = false
		f.Refresh()
	}
}

func (f *follower) anyLeaving() bool {
	for _, d := range f.dbs {
		if d.leaving {
			return true
		}
	}
	return false
}

// sourceFailed records that the source or a db of it could not be listed.
func (n *Node) sourceFailed(ctx context.Context, db string, err error) {
	if errors.Is(context.Cause(ctx), context.Canceled) {
		return // the node is shutting down
	}
	n.health.Fail(db, err)
	n.o.Metrics.Load.SourceFailed()
	if db != "" {
		n.log.Error("a database cannot be listed; serving goes on", "db", db, "error", err)
		return
	}
	n.log.Error("the source cannot be listed; serving goes on", "error", err)
}

// sourceRead records that the source or a db of it was listed, and reports ignored entries; also are
// further messages.
func (n *Node) sourceRead(ctx context.Context, db string, also []string) {
	switch since := n.health.OK(db); {
	case since.IsZero():
	case db == "":
		n.log.Info("the source can be listed again", "after", time.Since(since).Round(time.Millisecond))
	default:
		n.log.Info("a database can be listed again", "db", db, "after", time.Since(since).Round(time.Millisecond))
	}
	names, err := source.Invalid(ctx, n.o.Source, db)
	if err != nil {
		return // it will be listed again
	}
	for _, warning := range n.health.LeftOut(db, names, also) {
		n.log.Warn(warning)
	}
}
