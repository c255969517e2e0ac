package node

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"sequins/internal/sleep"
	"sequins/version"
)

// A db follows one database. What is not a channel, an atomic or a set belongs
// to the goroutine of run.
type db struct {
	node *Node
	name string
	log  *slog.Logger
	set  *version.Set
	// atStart: it was in the source or on the disk when the node started.
	atStart bool
	view    atomic.Pointer[view]

	ctx    context.Context // of everything that works in the background
	cancel context.CancelFunc
	// followBy is when the event that is being handled has waited long enough for
	// the first looks at who holds what.
	followBy time.Time

	state version.State
	facts map[string]*facts   // of each entry of state
	live  map[string]*live    // of each version in set
	loads map[string]*loading // that have not ended

	listing    bool              // the versions are being listed
	again      bool              // and have to be once more
	unfinished string            // the newest version that does not exist yet, and why
	last       listing           // that did not fail
	whole      bool              // see view
	relooks    int               // how often the versions had to be listed again soon
	unlistable int               // how many listings in a row have failed by the db's own fault
	alone      []string          // versions that all other nodes hold by another plan
	others     map[string]string // those plans, when they were last compared with the source
	due        []string          // versions that are tried again when the versions have been listed

	unrecorded int // how many attempts in a row to record the version to switch to have failed

	relookAt     time.Time // when the versions will be listed again; zero: at the next refresh
	cancelRelook context.CancelFunc

	// listed: the source has listed it since the process started. It belongs to
	// start, and then to the follower.
	listed bool
	// leaving: it is not in the source any more. It belongs to the follower.
	leaving bool

	begun    chan struct{}  // closed when what is here has been opened
	refresh  chan struct{}  // the versions are to be listed
	unlisted chan struct{}  // the first look at the source did not find the db, or failed
	gone     chan struct{}  // the db is not in the source any more
	survey   chan struct{}  // the cluster has changed
	messages chan message   // from the goroutines below
	working  sync.WaitGroup // listing, loading, waiting for idleness, deleting
	closing  sync.WaitGroup // versions that wait for their readers
	stopped  chan struct{}  // closed when nobody takes messages any more
}

// A message is what a goroutine of a db has to tell it.
type message interface{ tell(d *db) }

// facts are what is to be known of a version beside its state.
type facts struct {
	created  time.Time // first seen by this node, maybe before a restart
	found    time.Time // first seen by this process
	activeAt time.Time
	retries  retries
	died     bool // the process of its last load has died
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
	d.view.Store(&view{})
	n.o.Metrics.Server.DB(name) // what is counted of it begins at 0, or nobody would see the first as an increase
	return d
}

// run follows the database until ctx ends, which newDB was given too, or
// nothing is left of it. Versions may be open then: see close.
func (d *db) run(ctx context.Context, listed bool) {
	d.begin()
	close(d.begun)
	d.advertise(ctx)
	if listed {
		d.startListing(false)
	}
	for ctx.Err() == nil && !d.state.Finished() {
		d.next()
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

// advertise tells the cluster what has been opened at the start, when requests for
// it are answered.
func (d *db) advertise(ctx context.Context) {
	select {
	case <-d.node.serving:
	case <-ctx.Done():
		return
	}
	for _, l := range d.live {
		d.tell(l)
	}
	d.publish()
}

// begin opens what is on the disk.
func (d *db) begin() {
	defer d.publish()
	local, err := d.node.o.Store.Versions(d.name)
	if err != nil {
		d.log.Error("the local store cannot be read; versions in it will be loaded again", "error", err)
	}
	served, err := d.node.o.Store.Served(d.name)
	if err != nil {
		d.log.Error("it is not known which version was served before the restart", "error", err)
	}
	d.handle(version.Start{Local: local, Served: served})
}

// next takes one event, whatever comes first.
func (d *db) next() {
	select {
	case <-d.ctx.Done():
	case m := <-d.messages:
		m.tell(d)
	case <-d.refresh:
		d.startListing(false)
	case <-d.unlisted:
		d.handle(version.Unlisted{}) // which changes nothing after the first look
	case <-d.gone:
		d.handle(version.Gone{})
	case <-d.survey:
		for name := range d.live {
			d.look(name)
			d.abandonRefuted(name)
			d.releaseSurplus(name)
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

// handle gives an event to the state machine, carries out what it says, and
// goes on with the events that come of it.
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

// note keeps facts of the versions that there are, and logs what has become of
// them.
func (d *db) note(before version.State) {
	for _, v := range d.state.Entries {
		old, found := before.Entry(v.Name)
		log := d.log.With("version", v.Name)
		if !found {
			d.facts[v.Name] = &facts{created: time.Now(), found: time.Now()}
			log.Info("version found")
		}
		if v.Reason != "" && (v.Failed && !old.Failed) {
			log.Error("version failed", "state", v.Status, "error", v.Reason)
		}
		if v.Status == version.Removing && old.Status != version.Removing {
			log.Info("version superseded or withdrawn", "was", old.Status)
		}
		if found && old.Status == version.Removing && v.Status != version.Removing {
			log.Info("version is not removed, as it is needed after all")
		}
	}
	d.retryLater(before)
	d.noteServed(before)
	for _, v := range before.Entries {
		if _, found := d.state.Entry(v.Name); !found {
			delete(d.facts, v.Name)
			d.node.o.Cluster.Forget(d.name, v.Name)
			if v.Status == version.Removing {
				d.log.Info("version removed", "version", v.Name)
			}
		}
	}
}

// noteServed logs that clients go back to an older version than before a restart.
func (d *db) noteServed(before version.State) {
	if before.Served == "" || d.state.Served != "" || d.state.Current != "" {
		return
	}
	lost, _ := d.state.Entry(before.Served)
	d.log.Error("the version that was served before the restart is lost; an older one may be served now",
		"version", before.Served, "reason", lost.Reason)
}

// look tells the state machine how much of a version is here.
func (d *db) look(name string) {
	if l := d.live[name]; l != nil {
		d.handle(d.seen(l))
	}
}

// work runs f in a goroutine that stop waits for, and takes the message that
// it ends with.
func (d *db) work(f func() message) {
	d.working.Go(func() { d.send(f()) })
}

// pause waits, for what works in the background. It reports whether the time has passed: false if the db
// was stopped first.
func (d *db) pause(wait time.Duration) bool {
	return sleep.For(d.ctx, wait) == nil
}

// send gives a message to the db, unless that has stopped.
func (d *db) send(m message) {
	select {
	case d.messages <- m:
	case <-d.stopped:
	}
}

// stop ends everything that works in the background.
func (d *db) stop() {
	d.cancel()
	done := make(chan struct{})
	go func() {
		d.working.Wait()
		close(done)
	}()
	for {
		select {
		case <-d.messages: // too late to matter
		case <-done:
			close(d.stopped)
			return
		}
	}
}

// close closes all versions, as soon as their readers let go of them. It is
// called after run.
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
