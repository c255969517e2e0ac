package node

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"sequins/internal/collect"
	"sequins/internal/content"
	"sequins/internal/names"
	"sequins/version/discovery"
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
	defer collect.Later()()
	n.elsewhere = n.askServing(ctx)
	for _, name := range local {
		n.add(ctx, name, false)
	}
	late := time.After(startTimeout)
	for _, d := range n.dbs {
		select {
		case <-d.followed.begun:
			continue
		case <-ctx.Done():
		case <-late:
			n.log.Warn("the start takes long: serving the databases that are open; the others answer 503 until their files have been read")
		}
		break
	}
	n.publish()
	return nil
}

// add creates a db and starts its goroutine. listed reports whether the source lists the db; then its versions are listed. What other nodes serve
// of it is taken from elsewhere, or asked for.
func (n *Node) add(ctx context.Context, name string, listed bool) {
	d := newDB(ctx, n, name)
	d.followed.atStart = !n.looked.Load()
	if listed {
		n.present(d)
	}
	n.dbs[name] = d
	serving := n.elsewhere
	n.following.Go(func() { d.run(ctx, listed, serving) })
}

// follow lists the source at the start, at each refresh, and after a pause if it could not be read.
func (n *Node) follow(ctx context.Context) {
	f := follower{node: n, found: make(chan databases)}
	f.look(ctx, true)
	for {
		select {
		case <-ctx.Done():
			return
		case l := <-f.found:
			f.take(ctx, l)
		case d := <-n.left:
			f.forget(d)
		case <-n.applied:
			f.full = n.nextRefresh()
			for _, d := range n.dbs {
				wake(d.followed.lookAgain) // the rules of gates may have changed
				wake(d.followed.reloaded)  // and what makes loads fail
			}
		case <-n.o.Cluster.Changes():
			for _, d := range n.dbs {
				wake(d.followed.lookAgain)
			}
		case <-n.health.Failed():
			f.retryLater()
		case <-n.refresh:
			f.look(ctx, true)
		case <-time.After(f.wait()):
			f.look(ctx, !f.full.IsZero() && !time.Now().Before(f.full))
		}
	}
}

// followed is what the follower of the source and the goroutine of a db share. The follower writes it.
type followed struct {
	atStart bool // it was in the source or on disk when the node started
	leaving bool // it is being removed

	begun     chan struct{} // closed when the versions on disk are open
	refresh   chan struct{} // list the versions
	unlisted  chan struct{} // the first listing of the source failed or did not contain the db
	gone      chan struct{} // the db is to be removed
	lookAgain chan struct{} // the cluster has changed
	reloaded  chan struct{} // the configuration was applied again
}

// A follower is the state of follow.
type follower struct {
	node  *Node
	full  time.Time // time of the next refresh; zero: only on request
	retry time.Time // time of the next retry; zero: nothing has failed
	// missed reports that dbs were found in the source but not added, because their previous instances were still being removed.
	missed bool

	looking bool           // a listing of the databases is running
	again   bool           // list again afterwards, for a refresh
	found   chan databases // receives the result of a listing
}

// databases is the result of a listing of the source.
type databases struct {
	names   []string
	err     error
	serving map[string]map[string]content.Content // what other nodes serve, if the source cannot be listed and blocks are copied from them
	full    bool                                  // see look
}

// nextRefresh returns the time of the next refresh; zero if there is none without a request.
func (n *Node) nextRefresh() time.Time {
	if period := n.reloadable.Load().RefreshPeriod; period > 0 {
		return time.Now().Add(period)
	}
	return time.Time{}
}

// wait returns the time until something is due.
func (f *follower) wait() time.Duration {
	wait := 24 * time.Hour
	for _, due := range []time.Time{f.full, f.retry} {
		if !due.IsZero() {
			wait = min(wait, time.Until(due))
		}
	}
	return wait
}

// retryLater schedules a retry, with growing pauses.
func (f *follower) retryLater() {
	since := f.node.health.FailingSince()
	if since.IsZero() || !f.retry.IsZero() {
		return
	}
	d := min(max(time.Since(since), minBackoff), maxBackoff)
	d += rand.N(d / 8)
	f.retry = time.Now().Add(d)
	f.node.log.Debug("the source will be tried again", "in", d.Round(time.Millisecond), "unreachable_since", since)
}

// look starts listing the databases in the background; take receives the result. A refresh (full) lists the versions of all databases, otherwise only
// failed listings of versions are repeated. A refresh during a running listing causes another one.
func (f *follower) look(ctx context.Context, full bool) {
	f.retry = time.Time{}
	if full {
		f.full = f.node.nextRefresh()
	}
	if f.looking {
		f.again = f.again || full
		return
	}
	f.looking = true
	n, served, timeout := f.node, f.node.served(), listTimeout
	full = full || n.health.RootFailing() // the refresh that failed is repeated
	if !n.looked.Load() {
		timeout = startTimeout
	}
	n.following.Go(func() {
		listing, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		all, err := discovery.Databases(listing, n.o.Source, n.o.SourceName, served)
		found := databases{names: all.Names, err: err, full: full}
		if err == nil {
			n.health.Read("", all.Remarks(""), n.log)
		} else if n.sourceFailed(listing, "", err); n.taker() != nil {
			found.serving = n.askServing(ctx)
		}
		select {
		case f.found <- found:
		case <-ctx.Done():
		}
	})
}

// take processes the result of a listing.
func (f *follower) take(ctx context.Context, found databases) {
	f.looking = false
	if found.err == nil {
		f.update(ctx, found)
		f.node.listed.Store(true)
		f.node.elsewhere = nil
	} else {
		if found.serving != nil {
			f.node.elsewhere = found.serving
		}
		for _, serves := range found.serving {
			for name := range serves {
				if f.node.dbs[name] == nil && names.Valid(name) {
					f.node.log.Warn("the source cannot be listed; what other nodes serve of a database is copied from them", "db", name)
					f.node.add(ctx, name, false)
				}
			}
		}
		f.node.publish()
		for _, d := range f.node.dbs {
			wake(d.followed.unlisted)
		}
	}
	f.node.looked.Store(true)
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
		d := f.node.dbs[name]
		if d == nil {
			f.node.log.Info("database found", "db", name)
			f.node.add(ctx, name, true)
			continue
		}
		switch {
		case d.followed.leaving:
			f.missed = true
		case found.full || f.node.health.Unseen(name) || f.node.health.IsFailing(name):
			f.node.present(d)
			wake(d.followed.refresh)
		}
	}
	timeout := f.node.reloadable.Load().DBRemoveTimeout
	served := f.node.served()
	sure := len(served) == 0 || slices.ContainsFunc(served, func(name string) bool { return there[name] })
	for name, d := range f.node.dbs {
		if there[name] {
			continue
		}
		wake(d.followed.unlisted)
		switch v := d.view.Load(); {
		case d.followed.leaving: // its removal is retried
		case !sure:
			f.node.health.Unsure(name, timeout, d.log)
			continue
		case v.isEmpty():
			d.log.Info("database removed: it is not in the source any more, and none of its versions was served")
		case f.node.health.Missing(name, v.absent, timeout, d.log):
			d.log.Warn("database removed: it has been absent from the source for long enough")
		default:
			wake(d.followed.lookAgain) // which writes since when
			continue
		}
		d.followed.leaving = true
		f.node.health.OK(name)
		wake(d.followed.gone)
	}
	f.node.publish()
}

// present records that the source lists a db.
func (n *Node) present(d *db) {
	if n.health.Present(d.name, d.log) {
		wake(d.followed.lookAgain) // which writes that
	}
}

// isEmpty reports whether nothing of a db was ever served here, no block of it is here, and no load of it reads its files.
func (v *view) isEmpty() bool {
	for _, version := range v.versions {
		if version.live != nil && slices.Contains(version.live.Held(), true) || version.loading != nil && version.loading.stage.Load() > waitingForTurn {
			return false
		}
	}
	return (v.read() || v.tried) && !v.served()
}

// forget removes the state of a db whose removal is complete.
func (f *follower) forget(d *db) {
	delete(f.node.dbs, d.name)
	f.node.o.Metrics.Forget(d.name)
	f.node.health.Forget(d.name)
	if err := f.node.o.Store.Forget(d.name); err != nil {
		d.log.Error("what is left of a database cannot be removed", "error", err)
	}
	if f.missed {
		f.missed = false
		f.node.Refresh()
	}
}

// sourceFailed records that the source or a db of it could not be listed.
func (n *Node) sourceFailed(ctx context.Context, db string, err error) {
	if errors.Is(context.Cause(ctx), context.Canceled) {
		return // the node is shutting down
	}
	since, news := n.health.Fail(db, err)
	n.o.Metrics.Load.SourceFailed()
	lasts := time.Since(since).Round(time.Second)
	switch {
	case news && db != "":
		n.log.Error("a database cannot be listed; serving goes on", "db", db, "error", err, "for", lasts)
	case news:
		n.log.Error("the source cannot be listed; serving goes on", "error", err, "for", lasts)
	}
}

// served returns the dbs that are served, or were before a restart, without those being removed.
func (n *Node) served() []string {
	var names []string
	for name, d := range n.dbs {
		if !d.followed.leaving && d.view.Load().served() {
			names = append(names, name)
		}
	}
	return names
}
