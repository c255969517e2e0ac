package node

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"sequins/discovery"
	"sequins/events"
	"sequins/gate"
	"sequins/internal/sleep"
	"sequins/pin"
	"sequins/transfer"
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
	told    atomic.Pointer[transfer.Survey] // what other nodes are told

	ctx    context.Context // of all background work
	cancel context.CancelFunc
	// followBy is the deadline of the current event for the first lookups of replicas.
	followBy time.Time

	state version.State
	facts map[string]*facts   // by id, of each entry of state
	live  map[string]*live    // by id, of each version in set
	loads map[string]*loading // by id, running

	listing    bool              // a listing is running
	again      bool              // list again afterwards
	unfinished string            // the newest incomplete version, and the reason
	last       discovery.Listing // the last successful listing
	whole      bool              // see view
	lost       string            // the partitions that logLost has logged as lost
	relooks    int               // number of scheduled listings
	relisting  bool              // a scheduled listing runs
	unlistable int               // number of consecutive listings that failed through the db's own fault
	check      check             // of what is served with the source
	wrong      map[string]string // what is wrong with versions that other nodes hold by another plan
	others     map[string]string // other plans at the last comparison with the source
	due        []string          // versions to retry after the running listing

	gate       *gate.Gate
	rules      gate.Rules // of the gate
	heldBefore []string   // versions that were held before a restart
	formerly   []string   // versions that were served before a restart
	unkept     bool       // what the gate remembers cannot be recorded

	restored     bool   // begin has opened what is on the disk
	servedBefore string // the version that was served before the restart

	origin     string          // the source that the versions on disk are from, if that is another one
	foreign    map[string]bool // the ids of these versions
	reloading  map[string]bool // those of them that are loaded from this source, and were not served since
	originKept bool            // the store has this source,
	otherwise  []string        // and that these are not from it

	pin         pin.File  // as last read
	recordedPin *pin.File // in the store; nil if that is not known
	changed     string    // a current version whose files have changed before; listings compare it with the source
	unrecorded  int       // number of consecutive failed attempts to record the served version
	recordDue   bool      // another attempt is scheduled

	relookAt     time.Time // time of the scheduled listing; zero: none
	cancelRelook context.CancelFunc

	// leaving reports whether it is being removed. It belongs to the follower.
	leaving bool

	begun    chan struct{}  // closed when the versions on disk are open
	refresh  chan struct{}  // list the versions
	unlisted chan struct{}  // the first listing of the source failed or did not contain the db
	gone     chan struct{}  // the db is to be removed
	survey   chan struct{}  // the cluster has changed
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
	unchanged  int               // number of partitions that were linked, see package unchanged
	following  version.Following // nil until it is opened or loaded
}

func newDB(ctx context.Context, n *Node, name string) *db {
	d := &db{
		node: n, name: name, log: n.log.With("db", name),
		set:      version.NewSet(name),
		facts:    make(map[string]*facts),
		live:     make(map[string]*live),
		loads:    make(map[string]*loading),
		begun:    make(chan struct{}),
		refresh:  make(chan struct{}, 1),
		unlisted: make(chan struct{}, 1),
		gone:     make(chan struct{}, 1),
		survey:   make(chan struct{}, 1),
		messages: make(chan message),
		stopped:  make(chan struct{}),
	}
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
		d.tellOthers()
	}
	d.stop()
	d.node.o.shadows.Stop(d.name)
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

// begin opens the versions on disk.
func (d *db) begin() {
	defer d.publish()
	local, err := d.node.o.Store.Versions(d.name)
	if err != nil {
		d.log.Error("the local store cannot be read; versions in it will be loaded again", "error", err)
	}
	d.gate, d.rules = d.newGate(), d.node.rules(d.name)
	served, err := d.node.o.Store.Served(d.name)
	likely := err != nil
	if likely {
		served = discovery.LikelyServed(d.node.o.Store, d.name, local, d.heldBefore, d.node.o.Cluster.Changes() != nil)
		d.log.Error("it is not known which version was served before the restart", "error", err)
	}
	d.readOrigin(local, served != "" || likely)
	if d.isMarked() {
		d.node.success.Store(d.name, true)
	}
	d.pin = d.keptPin()
	d.servedBefore = served
	taken := ""
	if served == "" && !likely {
		var held []string
		taken, held = d.takeOver()
		d.heldBefore = append(d.heldBefore, held...)
	}
	d.handle(version.Start{Local: local, Served: max(served, taken), Taken: taken != "", Likely: likely, Waiting: d.node.o.Cluster.Changes() != nil,
		Pin: d.allowed(), Keep: d.keep(), Held: d.heldBefore, Former: d.formerly, Foreign: d.strangers()})
	d.restored = true
	d.tellOthers()
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
	case <-d.gone:
		d.handle(version.Gone{})
	case <-d.survey:
		d.followRules()
		for name, l := range d.live {
			d.withdrawDamaged(l)
			d.look(name)
			if l := d.loads[name]; l != nil && l.stage.Load() != planning { // otherwise it is asked when it has its plan
				d.abandonRefuted(name)
			}
			d.releaseSurplus(name)
		}
		d.openServed()
		d.logLost()
		if d.state.Unrecorded && !d.mayStay() {
			d.switchAgain()
		}
		d.lookAtOthers()
	case c := <-d.set.Corruptions():
		d.node.o.Metrics.Server.ChecksumFailure(d.name)
		d.log.Error("a block is damaged", "version", c.Version,
			"partition", c.Partition, "error", c.Err)
		if d.set.Concerns(c) {
			d.handle(version.Corrupted{Version: c.Version, Partition: c.Partition})
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
		old, found := before.Entry(v.Name)
		log := d.log.With("version", v.Name)
		if !found {
			d.facts[v.Name] = &facts{created: time.Now(), found: time.Now()}
			if d.restored { // what is found at the start was found before
				d.events.Found(v.Name)
			} else {
				log.Info("version found")
			}
		}
		switch {
		case v.Reason == "" || !v.Failed || old.Failed:
		case d.facts[v.Name].incomplete:
			log.Info("version is not complete after all", "reason", v.Reason)
		default:
			d.events.Failed(v.Name, v.Status, v.Reason, old.Reason)
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
		if _, found := d.state.Entry(v.Name); !found {
			if f := d.facts[v.Name].following; f != nil {
				f.Stop()
			}
			delete(d.facts, v.Name)
			d.forgetOrigin(v.Name)
			d.gate.Forget(v.Name)
			if v.Status == version.Removing {
				d.events.Removed(v.Name)
			}
		}
	}
}

// noteServed logs that an older version may be served than before a restart.
func (d *db) noteServed(before version.State) {
	if before.Served == "" || d.state.Served != "" || d.state.Current >= before.Served || !d.state.Pin.Allows(before.Served) {
		return
	}
	lost, _ := d.state.Entry(before.Served)
	d.log.Error("the version that was served before the restart is lost; an older one may be served now",
		"version", before.Served, "reason", lost.Reason)
}

// openServed tries again to open the version that was served before the restart, because other nodes may
// hold it now. It needs the plan in the store; otherwise a refresh opens the version.
func (d *db) openServed() {
	if d.state.Served == "" || d.live[d.state.Served] != nil {
		return
	}
	if _, err := d.node.o.Store.Dir(d.name, d.state.Served); err == nil {
		d.handle(version.Surveyed{})
	}
}

// look reports the state of a version to the state machine.
func (d *db) look(name string) {
	if l := d.live[name]; l != nil {
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
	for name := range d.live {
		if v := d.set.Remove(name); v != nil {
			errs = append(errs, v.Close(d.node.patience))
		}
	}
	d.closing.Wait()
	return errors.Join(errs...)
}
