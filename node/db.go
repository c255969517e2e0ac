package node

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"sequins/internal/content"
	"sequins/load"
	"sequins/node/events"
	"sequins/store"
	"sequins/version"
	"sequins/version/pin"
)

// A db follows one database. What belongs to its goroutine, run, is in parts; each of them sees the others through db. A message of any part
// may change the facts, and decide.
type db struct {
	node *Node
	name string
	log  *slog.Logger
	// events are told what happens to versions, and log it.
	events *events.DB
	set    *version.Set
	view   atomic.Pointer[view]

	lister   lister     // what the source has
	loads    loads      // what is being made from it
	keeper   keeper     // what is here
	judge    judge      // whether it may be served
	memory   memory     // what a restart needs
	bg       background // work outside of the goroutine
	followed followed   // what the node's follower of the source shares with this db

	marked  atomic.Bool // a version has _SUCCESS
	facts   version.Facts
	noted   version.Facts             // the facts at the last note
	records map[content.Input]*record // of each entry of facts
	pin     pin.File                  // as last read
	// followBy is the deadline of the current decision for the first lookups of replicas.
	followBy time.Time
	restored bool // begin has opened what is on the disk
}

// A message is what follows from something outside of the goroutine of the db, such as the end of background work. It is called on that goroutine.
type message func()

// A record is what is known of a version in addition to its entry.
type record struct {
	created   time.Time // first seen by this node, maybe before a restart
	found     time.Time // first seen by this process
	activeAt  time.Time
	retries   retries
	reloaded  []int             // partitions set aside as damaged since the last retry
	err       error             // of its last load
	unchanged int               // number of partitions that were linked, see package unchanged
	following version.Following // nil until it is opened or loaded
	// later is the manifest of another division of the input that another node holds, and that is later in the order of detection than
	// this node's: a record has refuted this node's.
	later     *store.Manifest
	divisions []content.Content // of the input, on other nodes, that were compared with this node's
}

func newDB(ctx context.Context, n *Node, name string) *db {
	d := &db{
		node: n, name: name, log: n.log.With("db", name), set: version.NewSet(name), records: make(map[content.Input]*record),
		followed: followed{begun: make(chan struct{}), refresh: make(chan struct{}, 1), unlisted: make(chan struct{}, 1),
			gone: make(chan struct{}, 1), lookAgain: make(chan struct{}, 1), reloaded: make(chan struct{}, 1)},
		bg: background{messages: make(chan message)},
	}
	d.lister.db, d.loads.db, d.keeper.db, d.judge.db, d.memory.db = d, d, d, d, d
	d.loads.running, d.loads.supersets = make(map[content.Input]*loading), make(map[content.Input]store.Manifest)
	d.keeper.live = make(map[content.Input]*live)
	d.bg.ctx, d.bg.cancel = context.WithCancel(ctx)
	d.events = n.o.Events.DB(name, d.log)
	d.view.Store(&view{})
	n.o.Metrics.Server.DB(name) // creates its counters at 0, so that the first event is visible as an increase
	return d
}

// run follows the database until ctx, which newDB was also given, ends or nothing is left of the
// database. Versions may still be open then, see close. listed reports whether the source lists it, and serving is what other nodes
// serve; nil asks them.
func (d *db) run(ctx context.Context, listed bool, serving map[string]map[string]content.Content) {
	d.begin(serving)
	close(d.followed.begun)
	select {
	case <-d.node.serving:
		for _, l := range d.keeper.live {
			l.advertiseOpen()
		}
	case <-ctx.Done():
	}
	d.publish()
	if d.facts.Waiting {
		d.bg.sendAfter(wholeTimeout, func() {
			d.facts.Waiting = false // other nodes have had time to advertise what they hold
			d.decide()
		})
	}
	if listed {
		d.lister.startListing(false)
	}
	for ctx.Err() == nil && !d.facts.Finished() {
		d.next()
		d.loads.setTerms()
		d.publish()
	}
	d.bg.stop()
	if d.facts.Finished() {
		select {
		case d.node.left <- d:
		case <-ctx.Done():
		}
	}
}

// options returns the settings of the database.
func (d *db) options() DB { return d.node.reloadable.Load().DB(d.name) }

// loadOptions returns the options for a new load. Like options, it may be called by any goroutine.
func (d *db) loadOptions() load.Options {
	o := d.options()
	o.Load.RequireSuccess = o.Load.RequireSuccess || o.AutoSuccess && d.marked.Load()
	return o.Load
}

// begin opens the versions on disk, and what other nodes serve.
func (d *db) begin(serving map[string]map[string]content.Content) {
	defer d.publish()
	local, err := d.node.o.Store.Contents(d.name)
	if err != nil {
		d.log.Error("the local store cannot be read; versions in it will be loaded again", "error", err)
	}
	d.judge.rules = d.options().Gate
	d.facts.Waiting, d.facts.Keep = d.node.o.Cluster.Changes() != nil, d.options().KeepVersions
	former := d.memory.remember(local)
	if serving == nil {
		serving = d.node.askServing(d.bg.ctx)
	}
	d.take(serving)
	d.facts.Start(local, former)
	d.memory.failAgain()
	d.decide()
	d.restored = true
}

// next processes one event.
func (d *db) next() {
	select {
	case <-d.bg.ctx.Done():
	case m := <-d.bg.messages:
		m()
	case <-d.followed.refresh:
		d.lister.startListing(false)
	case <-d.followed.unlisted:
		d.lister.unreadable()
	case <-d.followed.gone:
		d.facts.Source, d.facts.Current = version.Gone, content.Input{}
		d.facts.DeleteAgain()
		d.decide()
	case <-d.followed.reloaded:
		d.loads.retryAll()
		d.lister.checkIfDue()
	case <-d.followed.lookAgain:
		d.memory.keepAbsence()
		d.judge.followRules()
		for in, l := range d.keeper.live {
			d.keeper.withdrawDamaged(l)
			d.keeper.look(in)
			d.loads.lookForDivisions(in)
			d.keeper.releaseSurplus(in)
		}
		if before := d.facts.Before(); before.Name != "" && d.keeper.live[before] == nil {
			// Other nodes may hold what was served before the restart. Without its manifest in the store, a refresh opens it.
			if _, err := d.node.o.Store.Dir(d.name, before); err == nil {
				d.facts.OpenAgain(before)
				d.decide()
			}
		}
		d.keeper.logLost()
		if d.facts.Unrecorded && !d.memory.mayStay() {
			d.memory.switchAgain()
		}
		d.lister.lookAtOthers()
	case c := <-d.set.Corruptions():
		d.node.o.Metrics.Server.ChecksumFailure(d.name)
		d.log.Error("a block is damaged", "version", c.Input.Name,
			"partition", c.Partition, "error", c.Err)
		if d.set.Concerns(c) {
			d.keeper.damaged(c.Input, c.Partition)
		}
	}
}

// decide does what follows from the facts, until nothing follows any more.
func (d *db) decide() {
	d.followBy = time.Now().Add(followTimeout)
	d.facts.Rejected = d.memory.rejected()
	for d.note(); ; d.note() {
		after, actions := version.Decide(d.facts)
		if len(actions) == 0 {
			return
		}
		i := slices.IndexFunc(actions, func(a version.Action) bool { return a.Op == version.Activate })
		if i >= 0 && !d.memory.recordSwitch(actions[i]) {
			d.facts.Unrecorded = true
			continue
		}
		d.facts = after
		d.note()
		for _, a := range actions {
			d.carryOut(a)
		}
	}
}

// note follows up how the facts have changed: it adds and drops records of versions, logs, and plans retries of what has failed.
func (d *db) note() {
	before := d.noted
	d.noted = d.facts.Clone()
	for _, v := range d.facts.Entries {
		old, found := before.Entry(v.Input)
		log := d.log.With("version", v.Name)
		if !found {
			d.records[v.Input] = &record{created: time.Now(), found: time.Now()}
			if d.restored { // what is found at the start was found before
				d.events.Found(v.Name, hasName(before.Entries, v.Name))
			} else {
				log.Info("version found")
			}
		}
		switch {
		case !v.Failure.Waits || old.Failure.Waits:
		case errors.Is(d.records[v.Input].err, load.ErrIncomplete): // since it was listed
			log.Info("version is not complete after all", "reason", v.Failure.Reason)
		default:
			d.events.Failed(v.Name, d.facts.Status(v), v.Failure.Reason, d.loads.lastReason(old, v))
		}
		if v.Removal == version.Undeleted && old.Removal != version.Undeleted {
			log.Error("the files of a version cannot be deleted; that is tried again", "error", v.Failure.Reason)
		}
		if v.Removal != version.Staying && old.Removal == version.Staying {
			log.Info("version superseded or withdrawn", "was", before.Status(old))
		}
		if found && old.Removal != version.Staying && v.Removal == version.Staying {
			log.Info("version is not removed, as it is needed after all")
		}
	}
	if before.Deciding() && !d.facts.Deciding() {
		d.bg.sendAfter(0, d.keeper.lookAtAll)
	}
	d.loads.retryLater(before)
	d.noteServed(before)
	for _, v := range before.Entries {
		if _, found := d.facts.Entry(v.Input); !found {
			d.forget(v)
		}
	}
}

// forget drops what is known of a version that has no entry any more.
func (d *db) forget(v version.Entry) {
	f := d.records[v.Input]
	if f.following != nil {
		f.following.Stop()
	}
	f.retries.timer.stop()
	delete(d.records, v.Input)
	d.memory.keepFailure(v.Input, nil)
	switch _, taken := d.loads.supersets[v.Input]; {
	case taken && v.Failure.Waits:
		d.loads.supersets[v.Input] = store.Manifest{} // other nodes do not give it: it is not taken again
	case taken:
		delete(d.loads.supersets, v.Input)
	}
	if v.Removal != version.Staying {
		d.events.Removed(v.Name, hasName(d.facts.Entries, v.Name))
	}
}

// hasName reports whether there is an entry of a version.
func hasName(entries []version.Entry, name string) bool {
	return slices.ContainsFunc(entries, func(v version.Entry) bool { return v.Name == name })
}

// noteServed logs that an older version may be served than before a restart.
func (d *db) noteServed(before version.Facts) {
	served := before.Before()
	if served.Name == "" || d.facts.Before().Name != "" || d.facts.Current.Name >= served.Name || !d.facts.Pin.Allows(served.Name) {
		return
	}
	lost, _ := d.facts.Entry(served)
	d.log.Error("the version that was served before the restart is lost; an older one may be served now",
		"version", served.Name, "reason", lost.Failure.Reason)
}

// close closes all versions after their readers have released them. It is called after run.
func (d *db) close() error {
	var errs []error
	for in := range d.keeper.live {
		if v := d.set.Remove(in); v != nil {
			errs = append(errs, v.Close(d.node.patience))
		}
	}
	d.bg.closing.Wait()
	return errors.Join(errs...)
}

// carryOut executes an action that the facts say is being carried out.
func (d *db) carryOut(a version.Action) {
	switch a.Op {
	case version.Open:
		d.keeper.open(a.Input)
	case version.Load:
		d.loads.startLoad(a.Input)
	case version.Activate:
		d.activate(a.Input, a.Back)
	case version.Cancel:
		d.loads.running[a.Input].cancel()
	case version.Retire:
		d.keeper.retire(a.Input)
	case version.Revive:
		d.set.Revive(a.Input)
		d.keeper.live[a.Input].retirement.stop()
	case version.Close:
		d.keeper.startClosing(a.Input)
	case version.Delete:
		d.bg.work(func() message {
			err := d.node.o.Store.Remove(d.name, a.Input)
			return func() { d.deleted(a.Input, err) }
		})
	case version.Forget: // see note
	}
}

func (d *db) activate(in content.Input, back bool) {
	old, activate := d.set.Current(), d.set.Activate
	if back {
		activate = d.set.GoBack
	}
	if err := activate(in); err != nil {
		d.log.Error("bug: version cannot be activated", "version", in.Name, "error", err)
		return
	}
	if v, _ := d.facts.Entry(in); v.Complete && d.loads.running[in] != nil {
		d.loads.reportLoaded(in, d.loads.running[in])
	}
	l := d.keeper.live[in]
	l.Switched()
	d.judge.waitAnew()
	d.judge.report(l)
	d.lister.checkSwitched(in.Name)
	d.keeper.keepManifest(l)
	f := d.records[in]
	f.activeAt = time.Now()
	after := f.activeAt.Sub(f.found)
	d.node.o.Metrics.Statsd.Active(d.name, in.Name, after)
	if old.Name == "" && in == d.facts.Served {
		d.log.Info("version active", "version", in.Name)
		return
	}
	d.events.Active(in.Name, old.Name, after)
	if back {
		d.events.RolledBack(in.Name, old.Name, cmp.Or(d.pin.Reasons[old.Name], d.pin.Reasons[in.Name]))
	}
}

// deleted records that the files of a version were deleted, or could not be.
func (d *db) deleted(in content.Input, err error) {
	reason := ""
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		reason = err.Error()
	}
	d.facts.Deleted(in, reason)
	d.decide()
}
