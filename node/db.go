package node

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"sequins/discovery"
	"sequins/events"
	"sequins/gate"
	"sequins/internal/content"
	"sequins/internal/sleep"
	"sequins/pin"
	"sequins/store"
	"sequins/version"
)

// A db follows one database. Fields that are not channels, atomics or sets belong to the goroutine of
// run.
type db struct {
	node *Node
	name string
	log  *slog.Logger
	// events are told what happens to versions, and log it.
	events *events.DB
	set    *version.Set
	// atStart reports whether it was in the source or on disk when the node started.
	atStart bool
	view    atomic.Pointer[view]

	ctx    context.Context // of all background work
	cancel context.CancelFunc
	// followBy is the deadline of the current event for the first lookups of replicas.
	followBy time.Time

	state version.State
	facts map[content.Input]*facts   // of each entry of state
	live  map[content.Input]*live    // of each version in set
	loads map[content.Input]*loading // running

	listing    bool                             // a listing is running
	again      bool                             // list again afterwards
	unfinished string                           // the newest incomplete version, and the reason
	last       discovery.Listing                // the last successful listing
	seenWhole  bool                             // see view.whole
	lost       string                           // the partitions that logLost has logged as lost
	relooks    int                              // number of scheduled listings
	relisting  bool                             // a scheduled listing runs
	unlistable int                              // number of consecutive listings that failed through the db's own fault
	check      check                            // of what is served with the source
	wrong      map[content.Input]string         // what is wrong with contents, by two consecutive listings
	others     map[content.Input]string         // what else other nodes held at the last comparison with the source
	supersets  map[content.Input]store.Manifest // contents that other nodes serve, and of whose files the source has a part
	due        []content.Input                  // inputs to retry after the running listing

	rules gate.Rules

	memory  store.State  // what a restart needs
	unsaved int          // number of consecutive failed attempts to write it
	saveDue bool         // another attempt is scheduled
	absent  atomic.Int64 // since when the source lacks the db, in Unix seconds; 0: it does not; or unknownAbsence

	restored     bool          // begin has opened what is on the disk
	servedBefore content.Input // what was served before the restart

	pin pin.File // as last read

	relookAt     time.Time // time of the scheduled listing; zero: none
	cancelRelook context.CancelFunc

	// leaving reports whether it is being removed. It belongs to the follower.
	leaving bool

	begun    chan struct{}  // closed when the versions on disk are open
	refresh  chan struct{}  // list the versions
	unlisted chan struct{}  // the first listing of the source failed or did not contain the db
	gone     chan struct{}  // the db is to be removed
	survey   chan struct{}  // the cluster has changed
	reloaded chan struct{}  // the configuration was applied again
	messages chan message   // from background goroutines
	working  sync.WaitGroup // background goroutines: listing, loading, retiring, deleting
	closing  sync.WaitGroup // versions waiting for their readers
	stopped  chan struct{}  // closed when messages are no longer received
}

// A message is the result of a background goroutine. tell processes it on the goroutine of the db.
type message interface{ tell(d *db) }

// facts are data of a version in addition to its state.
type facts struct {
	created  time.Time // first seen by this node, maybe before a restart
	found    time.Time // first seen by this process
	activeAt time.Time
	retries  retries
	died     bool // the process of its last load has died
	// incomplete: when it was to be loaded it was not complete any more.
	incomplete bool
	outcome    string            // of its last load, see load.Outcome
	unchanged  int               // number of partitions that were linked, see package unchanged
	following  version.Following // nil until it is opened or loaded
	// later is the manifest of another division of the input that another node holds, and that is later in the order of detection than
	// this node's: a record has refuted this node's.
	later     *store.Manifest
	divisions []content.Content // of the input, on other nodes, that were compared with this node's
}

func newDB(ctx context.Context, n *Node, name string) *db {
	d := &db{
		node: n, name: name, log: n.log.With("db", name),
		set:       version.NewSet(name),
		facts:     make(map[content.Input]*facts),
		live:      make(map[content.Input]*live),
		loads:     make(map[content.Input]*loading),
		supersets: make(map[content.Input]store.Manifest),
		begun:     make(chan struct{}),
		refresh:   make(chan struct{}, 1),
		unlisted:  make(chan struct{}, 1),
		gone:      make(chan struct{}, 1),
		survey:    make(chan struct{}, 1),
		reloaded:  make(chan struct{}, 1),
		messages:  make(chan message),
		stopped:   make(chan struct{}),
	}
	d.absent.Store(unknownAbsence)
	d.ctx, d.cancel = context.WithCancel(ctx)
	d.events = n.o.Events.DB(name, d.log)
	d.view.Store(&view{})
	n.o.Metrics.Server.DB(name) // creates its counters at 0, so that the first event is visible as an increase
	return d
}

// run follows the database until ctx, which newDB was also given, ends or nothing is left of the
// database. Versions may still be open then, see close.
func (d *db) run(ctx context.Context, listed bool) {
	d.begin()
	close(d.begun)
	d.advertise(ctx)
	if d.state.Waiting {
		d.tellAfter(wholeTimeout, outcome{version.Waited{}})
	}
	if listed {
		d.startListing(false)
	}
	for ctx.Err() == nil && !d.state.Finished() {
		d.next()
		d.setTerms()
		d.publish()
	}
	d.stop()
	if d.state.Finished() {
		select {
		case d.node.left <- d:
		case <-ctx.Done():
		}
	}
}

// advertise publishes the open versions to the cluster as soon as requests for keys are admitted.
func (d *db) advertise(ctx context.Context) {
	select {
	case <-d.node.serving:
	case <-ctx.Done():
		return
	}
	for _, l := range d.live {
		l.tell()
	}
	d.publish()
}

// begin opens the versions on disk, and what other nodes serve.
func (d *db) begin() {
	defer d.publish()
	local, err := d.node.o.Store.Contents(d.name)
	if err != nil {
		d.log.Error("the local store cannot be read; versions in it will be loaded again", "error", err)
	}
	d.rules = d.node.rules(d.name)
	start := version.Start{Local: local, Waiting: d.node.o.Cluster.Changes() != nil, Keep: d.keep()}
	d.remember(&start)
	d.servedBefore = start.Served
	if taken := d.node.servedElsewhere(d.ctx, d.name); taken.Name > start.Served.Name && !start.Likely {
		start.Taken = taken.Input
		d.log.Info("other nodes serve a version, which this node serves before newer ones", "version", taken.Name)
	}
	d.handle(start)
	d.restored = true
}

// next processes one event.
func (d *db) next() {
	select {
	case <-d.ctx.Done():
	case m := <-d.messages:
		m.tell(d)
	case <-d.refresh:
		d.startListing(false)
	case <-d.unlisted:
		d.handle(version.Unlisted{}) // no effect after the first listing
		d.endPin()
	case <-d.gone:
		d.handle(version.Gone{})
	case <-d.reloaded:
		d.retryAll()
		if d.checking() {
			d.startCheck()
		}
	case <-d.survey:
		d.keepAbsence()
		d.followRules()
		for in, l := range d.live {
			d.withdrawDamaged(l)
			d.look(in)
			d.lookForDivisions(in)
			d.releaseSurplus(in)
		}
		d.openServed()
		d.logLost()
		if d.state.Unrecorded && !d.mayStay() {
			d.switchAgain()
		}
		d.lookAtOthers()
	case c := <-d.set.Corruptions():
		d.node.o.Metrics.Server.ChecksumFailure(d.name)
		d.log.Error("a block is damaged", "version", c.Input.Name,
			"partition", c.Partition, "error", c.Err)
		if d.set.Concerns(c) {
			d.handle(version.Corrupted{Input: c.Input, Partition: c.Partition})
		}
	}
}

// handle passes events to the state machine, executes the resulting actions, and continues with the
// events that they cause.
func (d *db) handle(events ...version.Event) {
	d.followBy = time.Now().Add(followTimeout)
	for len(events) > 0 {
		before := d.state
		var actions []version.Action
		d.state, actions = d.apply(events[0])
		events = events[1:]
		d.note(before)
		for _, a := range actions {
			if e := d.carryOut(a); e != nil {
				events = append(events, e)
			}
		}
	}
}

// note updates the facts of versions, and logs changes of their state.
func (d *db) note(before version.State) {
	for _, v := range d.state.Entries {
		old, found := before.Entry(v.Input)
		log := d.log.With("version", v.Name)
		if !found {
			d.facts[v.Input] = &facts{created: time.Now(), found: time.Now()}
			if d.restored { // what is found at the start was found before
				d.events.Found(v.Name, hasName(before.Entries, v.Name))
			} else {
				log.Info("version found")
			}
		}
		switch {
		case v.Reason == "" || !v.Failed || old.Failed:
		case d.facts[v.Input].incomplete:
			log.Info("version is not complete after all", "reason", v.Reason)
		default:
			d.events.Failed(v.Name, v.Status, v.Reason, d.lastReason(old, v))
		}
		if v.Status == version.Removing && old.Status != version.Removing {
			log.Info("version superseded or withdrawn", "was", old.Status)
		}
		if found && old.Status == version.Removing && v.Status != version.Removing {
			log.Info("version is not removed, as it is needed after all")
		}
	}
	if before.Deciding() && !d.state.Deciding() {
		d.tellAfter(0, rejudged{})
	}
	d.retryLater(before)
	d.noteServed(before)
	for _, v := range before.Entries {
		if _, found := d.state.Entry(v.Input); !found {
			d.forget(v)
		}
	}
}

// forget drops what is known of a version that has no entry any more.
func (d *db) forget(v version.Entry) {
	f := d.facts[v.Input]
	if f.following != nil {
		f.following.Stop()
	}
	f.retries.stop()
	delete(d.facts, v.Input)
	d.keepFailure(v.Input, nil)
	switch _, taken := d.supersets[v.Input]; {
	case taken && v.Failed:
		d.supersets[v.Input] = store.Manifest{} // other nodes do not give it: it is not taken again
	case taken:
		delete(d.supersets, v.Input)
	}
	if v.Status == version.Removing {
		d.events.Removed(v.Name, hasName(d.state.Entries, v.Name))
	}
}

// hasName reports whether there is an entry of a version.
func hasName(entries []version.Entry, name string) bool {
	return slices.ContainsFunc(entries, func(v version.Entry) bool { return v.Name == name })
}

// noteServed logs that an older version may be served than before a restart.
func (d *db) noteServed(before version.State) {
	served := before.Served
	if served.Name == "" || d.state.Served.Name != "" || d.state.Current.Name >= served.Name || !d.state.Pin.Allows(served.Name) {
		return
	}
	lost, _ := d.state.Entry(served)
	d.log.Error("the version that was served before the restart is lost; an older one may be served now",
		"version", served.Name, "reason", lost.Reason)
}

// openServed tries again to open the version that was served before the restart, because other nodes may
// hold it now. It needs the manifest in the store; otherwise a refresh opens the version.
func (d *db) openServed() {
	if d.state.Served.Name == "" || d.live[d.state.Served] != nil {
		return
	}
	if _, err := d.node.o.Store.Dir(d.name, d.state.Served); err == nil {
		d.handle(version.Surveyed{})
	}
}

// look reports the state of a version to the state machine.
func (d *db) look(in content.Input) {
	if l := d.live[in]; l != nil {
		d.handle(d.seen(l))
	}
}

// work runs f on a goroutine that stop waits for, and processes the message that f returns.
func (d *db) work(f func() message) {
	d.working.Go(func() { d.send(f()) })
}

// tellAfter processes a message after a while.
func (d *db) tellAfter(wait time.Duration, m message) {
	d.work(func() message {
		d.pause(wait)
		return m
	})
}

// tellAt processes a message at a time. It comes early if cancel is called, so its receiver has to know when it is due.
func (d *db) tellAt(at time.Time, m message) (cancel context.CancelFunc) {
	ctx, cancel := context.WithCancel(d.ctx)
	d.work(func() message {
		_ = sleep.For(ctx, time.Until(at))
		return m
	})
	return cancel
}

// pause waits, in background work. It returns false if the db is stopped first.
func (d *db) pause(wait time.Duration) bool {
	return sleep.For(d.ctx, wait) == nil
}

// send sends a message to the db, unless it has stopped.
func (d *db) send(m message) {
	select {
	case d.messages <- m:
	case <-d.stopped:
	}
}

// stop ends all background work.
func (d *db) stop() {
	d.cancel()
	done := make(chan struct{})
	go func() {
		d.working.Wait()
		close(done)
	}()
	for {
		select {
		case <-d.messages: // dropped
		case <-done:
			close(d.stopped)
			return
		}
	}
}

// close closes all versions after their readers have released them. It is called after run.
func (d *db) close() error {
	var errs []error
	for in := range d.live {
		if v := d.set.Remove(in); v != nil {
			errs = append(errs, v.Close(d.node.patience))
		}
	}
	d.closing.Wait()
	return errors.Join(errs...)
}
