package node

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"sequins/internal/content"
	"sequins/internal/names"
	"sequins/internal/sleep"
	"sequins/source"
	"sequins/version"
	"sequins/version/discovery"
)

// A follower follows the source, and has the databases. What belongs to its goroutine is start's before follow begins.
type follower struct {
	node    *shared
	catalog atomic.Pointer[map[string]*db] // the served dbs; replaced, never modified

	applied chan struct{} // Apply was called
	left    chan *db      // dbs whose goroutine has ended

	// dbs are all dbs, including those being removed. elsewhere is what other nodes served when they were asked last, at the start or as the
	// source could not be listed; nil once it has been.
	dbs       map[string]*db
	elsewhere map[string]map[string]content.Content
	away      bool // this node had not joined when it opened its databases; set before requests are admitted

	full  time.Time // time of the next refresh; zero: only on request
	retry time.Time // time of the next retry; zero: nothing has failed
}

func newFollower(s *shared) *follower {
	f := &follower{node: s, applied: make(chan struct{}, 1), left: make(chan *db), dbs: make(map[string]*db)}
	f.catalog.Store(&map[string]*db{})
	return f
}

// start joins the cluster and opens the versions on disk. It does not wait for the source. While the cluster cannot be joined, it opens and admits
// what was served before a restart.
func (f *follower) start(ctx context.Context, admit func()) error {
	err := f.node.o.Cluster.Join(ctx, func(members []string) error {
		f.node.log.Warn("ZooKeeper cannot be reached: what was served before is served again, and nothing is loaded until it can", "asked", members)
		f.away = true
		if err := f.open(ctx, members); err != nil {
			return err
		}
		admit()
		return nil
	})
	switch {
	case err != nil:
		return err
	case f.away:
		f.elsewhere = f.node.askServing(ctx, f.node.others())
		for _, d := range f.dbs {
			d.followed.serving = f.elsewhere
		}
		f.node.looked.Store(true) // it answers already, and what the source has since then does not make it unready
		return nil
	}
	return f.open(ctx, f.node.others())
}

// open opens the versions on disk, after it has asked other nodes what they serve.
func (f *follower) open(ctx context.Context, others []string) error {
	local, err := f.node.o.Store.Databases()
	if err != nil {
		return fmt.Errorf("reading the local store: %w", err)
	}
	f.elsewhere = f.node.askServing(ctx, others)
	for _, name := range local {
		f.add(ctx, name, false)
	}
	late := time.After(startTimeout)
	for _, d := range f.dbs {
		select {
		case <-d.followed.begun:
			continue
		case <-ctx.Done():
		case <-late:
			f.node.log.Warn("the start takes long: serving the databases that are open; the others answer 503 until their files have been read")
		}
		break
	}
	f.publish()
	return ctx.Err()
}

// add creates a db and starts its goroutine. listed reports whether the source lists the db; then its versions are listed. What other nodes serve
// of it is taken from elsewhere, or asked for.
func (f *follower) add(ctx context.Context, name string, listed bool) {
	d := newDB(ctx, f.node, name)
	if d.followed.listed = listed; listed {
		sleep.Wake(d.followed.refresh)
	}
	d.followed.away = f.away && !f.node.joined.Load()
	f.dbs[name] = d
	serving := f.elsewhere
	f.node.following.Go(func() {
		d.run(ctx, serving)
		if ctx.Err() == nil { // nothing is left of it
			select {
			case f.left <- d:
			case <-ctx.Done():
			}
		}
	})
}

// follow lists the source at the start, at each refresh, and after a pause if it could not be read.
func (f *follower) follow(ctx context.Context) {
	f.node.following.Go(func() { f.followCluster(ctx) })
	f.look(ctx, true)
	for {
		select {
		case <-ctx.Done():
			return
		case d := <-f.left:
			f.forget(d)
		case <-f.applied:
			f.full = f.nextRefresh()
		case <-f.node.health.Failed():
			f.retryLater()
		case <-f.node.refresh:
			f.look(ctx, true)
		case <-time.After(f.wait()):
			f.look(ctx, !f.full.IsZero() && !time.Now().Before(f.full))
		}
	}
}

// followCluster wakes the databases for which something in the cluster changes, until ctx ends.
func (f *follower) followCluster(ctx context.Context) {
	for {
		select {
		case changed := <-f.node.o.Cluster.Changes():
			for name, d := range *f.catalog.Load() {
				if changed[name] || changed[""] {
					sleep.Wake(d.followed.lookAgain)
				}
			}
		case <-ctx.Done():
			return
		}
	}
}

// nextRefresh returns the time of the next refresh; zero if there is none without a request.
func (f *follower) nextRefresh() time.Time {
	if period := f.node.reloadable.Load().RefreshPeriod; period > 0 {
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

// look lists the databases. A refresh (full) lists the versions of all databases, otherwise only failed listings of versions are repeated.
func (f *follower) look(ctx context.Context, full bool) {
	f.retry = time.Time{}
	if full {
		f.full = f.nextRefresh()
	}
	timeout := listTimeout
	if !f.node.looked.Load() {
		timeout = startTimeout
	}
	listing, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	found, err := discovery.Databases(listing, f.node.o.Source, f.node.o.SourceName, f.served())
	if err == nil {
		f.update(ctx, found, full || f.node.health.IsFailing("")) // the refresh that failed is repeated
		f.node.listed.Store(true)
		f.elsewhere = nil
	} else {
		f.node.sourceFailed(listing, timeout, "", err)
		f.copyOnly(ctx)
	}
	f.node.looked.Store(true)
}

// copyOnly adds the databases that other nodes serve, while the source cannot be listed and if blocks are copied from other nodes.
func (f *follower) copyOnly(ctx context.Context) {
	if f.node.taker() != nil {
		f.elsewhere = f.node.askServing(ctx, f.node.others())
		for _, serves := range f.elsewhere {
			for name := range serves {
				if f.dbs[name] == nil && names.Valid(name) {
					f.node.log.Warn("the source cannot be listed; what other nodes serve of a database is copied from them", "db", name)
					f.add(ctx, name, false)
				}
			}
		}
	}
	f.publish()
	for _, d := range f.dbs {
		sleep.Wake(d.followed.unlisted)
	}
}

// minAbsentLooks is how many listings in this process must lack a db before it is removed, however long
// it has been absent: an unmounted directory or an eventually consistent store may list it again.
const minAbsentLooks = 3

// update adds and removes databases, and lists the versions of the others.
func (f *follower) update(ctx context.Context, found source.Names, full bool) {
	timeout := f.node.reloadable.Load().DBRemoveTimeout
	remarks, served := found.Remarks(""), f.served()
	sure := len(served) == 0 || slices.ContainsFunc(served, func(name string) bool { return slices.Contains(found.Names, name) })
	if !sure { // they were renamed or deleted, or another directory is in the place of the source
		remarks = append(remarks, fmt.Sprintf("%s is not in the source, and neither is any other database that is served here; they are served on. "+
			"If they were renamed or deleted, there is nothing to do: they are removed when a database of the source is served and %s have passed. If this is not the source, mount it or put it back",
			slices.Min(served), timeout))
	}
	there := make(map[string]bool, len(found.Names))
	for _, name := range found.Names {
		there[name] = true
		d := f.dbs[name]
		if d == nil {
			f.node.log.Info("database found", "db", name)
			f.add(ctx, name, true)
			continue
		}
		if full || !d.followed.listed || f.node.health.IsFailing(name) {
			sleep.Wake(d.followed.refresh)
		}
		if d.followed.absences > 0 {
			d.log.Info("database is in the source again")
		}
		d.followed.listed, d.followed.absences = true, 0
	}
	for name, d := range f.dbs {
		if there[name] && !d.followed.leaving { // one that leaves is added again after that
			continue
		}
		sleep.Wake(d.followed.unlisted)
		f.node.health.Forget(name) // its versions cannot be listed, which is no failure
		d.followed.listed = false
		switch {
		case d.followed.leaving: // its removal is retried
		case !sure:
			continue
		case d.view.Load().isEmpty():
			d.log.Info("database removed: it is not in the source any more, and none of its versions was served")
		default:
			if d.followed.absences == 0 {
				d.followed.absent = time.Now()
			}
			if full || d.followed.absences == 0 {
				d.followed.absences++
			}
			if d.followed.absences < minAbsentLooks || time.Since(d.followed.absent) < timeout {
				remarks = append(remarks, fmt.Sprintf("%s is not in the source since %s; what is here of it stays, and is removed when it has been absent for %s, unless it is put back",
					name, d.followed.absent.UTC().Format(time.RFC3339), timeout))
				continue
			}
			d.log.Warn("database removed: it has been absent from the source for long enough")
		}
		d.followed.leaving = true
		sleep.Wake(d.followed.gone)
	}
	slices.Sort(remarks)
	f.node.health.Read("", remarks)
	f.publish()
}

// forget removes the state of a db whose removal is complete.
func (f *follower) forget(d *db) {
	delete(f.dbs, d.name)
	f.node.o.Metrics.Forget(d.name)
	f.node.health.Forget(d.name)
	if err := f.node.o.Store.Forget(d.name); err != nil {
		d.log.Error("what is left of a database cannot be removed", "error", err)
	}
	f.retry = time.Now() // it may be in the source again
}

// served returns the dbs that are served, or were before a restart, without those being removed.
func (f *follower) served() []string {
	var names []string
	for name, d := range f.dbs {
		if !d.followed.leaving && d.view.Load().served() {
			names = append(names, name)
		}
	}
	return names
}

// publish replaces the catalog by one without dbs that are being removed, and without those of which there is nothing.
func (f *follower) publish() {
	served := maps.Clone(f.dbs)
	maps.DeleteFunc(served, func(_ string, d *db) bool { return d.followed.leaving || !d.followed.listed && d.view.Load().isBare() })
	before := *f.catalog.Swap(&served)
	for name, d := range served {
		if before[name] != d {
			sleep.Wake(d.followed.lookAgain) // the cluster may have changed since it was added
		}
	}
}

// contents returns what this node serves of each database, or served before its restart, for other nodes.
func (f *follower) contents() map[string]content.Content {
	all := make(map[string]content.Content)
	if f.node.admitted().IsZero() { // other nodes that start at the same time may not wait until the databases are open
		local, _ := f.node.o.Store.Databases() // an error is open's
		for _, name := range local {
			if s, err := f.node.o.Store.State(name); err == nil && s.Served.Name != "" {
				all[name] = s.Served
			}
		}
		return all
	}
	for name, d := range *f.catalog.Load() {
		if c := d.view.Load().serving; c.Name != "" {
			all[name] = c
		}
	}
	return all
}

// sets returns the sets of the databases that are served.
func (f *follower) sets() (all []*version.Set) {
	for _, d := range *f.catalog.Load() {
		all = append(all, d.set)
	}
	return all
}
