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
	// startTimeout bounds the first look at the source, and the first look at the
	// versions of each db: until then only what was served before is served, and
	// the node is not ready.
	startTimeout = 15 * time.Second
	// listTimeout bounds one listing of the source.
	listTimeout = 2 * time.Minute
	// maxListings is how many databases have their versions listed at a time.
	maxListings = 32
	// minBackoff and maxBackoff bound the time until a source that could not
	// be read is tried again.
	minBackoff = time.Second
	maxBackoff = 5 * time.Minute
)

// start joins the cluster and opens what is on the disk, and does not wait for the
// source.
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

// add makes a db and starts its goroutine. Its versions are listed if the source
// lists the db.
func (n *Node) add(ctx context.Context, name string, listed bool) {
	d := newDB(ctx, n, name)
	d.atStart = !n.looked.Load()
	if listed {
		d.setListed()
	}
	n.dbs[name] = d
	n.following.Go(func() { d.run(ctx, listed) })
}

// follow lists the source at the start and then when it is time to: at each
// refresh, and after a while if it could not be read.
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
		case <-n.health.failed:
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
	full  time.Time // of the next refresh; zero: when asked to
	retry time.Time // of the next attempt at what has failed; zero: nothing has
	// missed: dbs were found in the source and not added, because their last
	// lives were not over.
	missed bool
	absent map[string]*absence // dbs that the source does not list, by name

	looking bool           // the databases are being listed
	again   bool           // and have to be once more, for a refresh
	found   chan databases // how that has ended
}

// databases are those that the source lists.
type databases struct {
	names []string
	err   error
	full  bool // see look
}

// after returns the time in a while from now; zero for never if d is.
func (n *Node) after(d time.Duration) time.Time {
	if d <= 0 {
		return time.Time{}
	}
	return time.Now().Add(d)
}

// wait returns how long nothing has to be done.
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

// retryLater plans another attempt: the longer it has failed, the later.
func (f *follower) retryLater() {
	since := f.health.failingSince()
	if since.IsZero() || !f.retry.IsZero() {
		return
	}
	d := min(max(time.Since(since), minBackoff), maxBackoff)
	d += rand.N(d / 8)
	f.retry = time.Now().Add(d)
	f.log.Warn("the source will be tried again", "in", d.Round(time.Millisecond), "unreachable_since", since)
}

// look lists the databases in the background, as a source may take its time; see
// take. If this is not a refresh, only those versions are listed after that whose
// listing has failed. A refresh during a look is another look after it.
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
	full = full || f.health.rootFailing() // its refresh is still to come
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

// take goes on with the databases that were found.
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

// update starts and ends databases as they come and go, and has the versions of
// the others listed.
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
		case found.full || back || f.health.isFailing(name):
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

// remove has a db end that is not in the source any more, or try again to.
func (f *follower) remove(d *db) {
	if !d.leaving {
		d.leaving = true
		d.log.Warn("database removed: it has been absent from the source for long enough")
	}
	f.health.ok(d.name)
	wake(d.gone)
}

// forget takes note that nothing is left of a db.
func (f *follower) forget(d *db) {
	delete(f.dbs, d.name)
	delete(f.absent, d.name)
	f.o.Metrics.Load.Forget(d.name)
	f.health.forget(d.name)
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

// sourceFailed takes note that the source, or a db of it, could not be listed.
func (n *Node) sourceFailed(ctx context.Context, db string, err error) {
	if errors.Is(context.Cause(ctx), context.Canceled) {
		return // we are shutting down
	}
	n.health.fail(db, err)
	n.o.Metrics.Load.SourceFailed()
	if db != "" {
		n.log.Error("a database cannot be listed; serving goes on", "db", db, "error", err)
		return
	}
	n.log.Error("the source cannot be listed; serving goes on", "error", err)
}

// sourceRead takes note that it could, and reports what is left out: also says
// so of versions.
func (n *Node) sourceRead(ctx context.Context, db string, also []string) {
	switch since := n.health.ok(db); {
	case since.IsZero():
	case db == "":
		n.log.Info("the source can be listed again", "after", time.Since(since).Round(time.Millisecond))
	default:
		n.log.Info("a database can be listed again", "db", db, "after", time.Since(since).Round(time.Millisecond))
	}
	names, err := source.Invalid(ctx, n.o.Source, db)
	if err != nil {
		return // it was listed a moment ago, and will be again
	}
	for _, warning := range n.health.leftOut(db, names, also) {
		n.log.Warn(warning)
	}
}
