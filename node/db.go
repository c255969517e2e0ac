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

	facts   version.Facts
	noted   version.Facts              // the facts at the last note
	records map[content.Input]*record  // of each entry of facts
	live    map[content.Input]*live    // of each version in set
	loads   map[content.Input]*loading // running

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

// A record is what is known of a version in addition to its entry.
type record struct {
	created  time.Time // first seen by this node, maybe before a restart
	found    time.Time // first seen by this process
	activeAt time.Time
	retries  retries
	reloaded []int // partitions set aside as damaged since the last retry
	died     bool  // the process of its last load has died
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
		records:   make(map[content.Input]*record),
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
	if d.facts.Waiting {
		d.tellAfter(wholeTimeout, waited{})
	}
	if listed {
		d.startListing(false)
	}
	for ctx.Err() == nil && !d.facts.Finished() {
		d.next()
		d.setTerms()
		d.publish()
	}
	d.stop()
	if d.facts.Finished() {
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
	d.facts.Waiting, d.facts.Keep = d.node.o.Cluster.Changes() != nil, d.keep()
	former := d.remember(local)
	d.servedBefore = d.facts.Served
	d.take(d.node.servedElsewhere(d.ctx, d.name))
	d.facts.Start(local, former)
	d.failAgain()
	d.decide()
	d.restored = true
}

// A waited reports that other nodes have had time to advertise what they hold.
type waited struct{}

// tell implements message.
func (waited) tell(d *db) {
	d.facts.Waiting = false
	d.decide()
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
		d.unreadable()
	case <-d.gone:
		d.facts.Source, d.facts.Current = version.Gone, content.Input{}
		d.facts.DeleteAgain()
		d.decide()
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
		if d.facts.Unrecorded && !d.mayStay() {
			d.switchAgain()
		}
		d.lookAtOthers()
	case c := <-d.set.Corruptions():
		d.node.o.Metrics.Server.ChecksumFailure(d.name)
		d.log.Error("a block is damaged", "version", c.Input.Name,
			"partition", c.Partition, "error", c.Err)
		if d.set.Concerns(c) {
			d.damaged(c.Input, c.Partition)
		}
	}
}

// decide does what follows from the facts, until nothing follows any more.
func (d *db) decide() {
	d.followBy = time.Now().Add(followTimeout)
	d.facts.Rejected = d.rejected()
	for d.note(); ; d.note() {
		actions := version.Decide(d.facts)
		if len(actions) == 0 {
			return
		}
		for _, a := range actions {
			if a.Op == version.Activate && !d.recordSwitch(a) {
				d.facts.Unrecorded = true
				break
			}
			d.facts.Do(a)
			if d.records[a.Input] == nil {
				d.note() // adds it
			}
			d.carryOut(a)
		}
	}
}

// note logs how the facts have changed, and adds and drops records of versions.
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
		case d.records[v.Input].incomplete:
			log.Info("version is not complete after all", "reason", v.Failure.Reason)
		default:
			d.events.Failed(v.Name, d.facts.Status(v), v.Failure.Reason, d.lastReason(old, v))
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
		d.tellAfter(0, rejudged{})
	}
	d.retryLater(before)
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
	f.retries.stop()
	delete(d.records, v.Input)
	d.keepFailure(v.Input, nil)
	switch _, taken := d.supersets[v.Input]; {
	case taken && v.Failure.Waits:
		d.supersets[v.Input] = store.Manifest{} // other nodes do not give it: it is not taken again
	case taken:
		delete(d.supersets, v.Input)
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

// openServed tries again to open the version that was served before the restart, because other nodes may
// hold it now. It needs the manifest in the store; otherwise a refresh opens the version.
func (d *db) openServed() {
	before := d.facts.Before()
	if before.Name == "" || d.live[before] != nil {
		return
	}
	if _, err := d.node.o.Store.Dir(d.name, before); err == nil {
		d.facts.OpenAgain(before)
		d.decide()
	}
}

// look takes what there is of a version into the facts.
func (d *db) look(in content.Input) {
	if l := d.live[in]; l != nil {
		d.see(l)
		d.decide()
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
