package node

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"sequins/internal/content"
	"sequins/load"
	"sequins/store"
	"sequins/version"
	"sequins/version/discovery"
)

// A db follows one database. Its goroutine, run, takes one message after the other; each of them changes what a part knows. Then decide gathers the
// facts, and carries out what follows from them.
type db struct {
	*common
	memory memory // what a restart needs
	judge  judge  // whether a version may be served
	keeper keeper // what is here
	loads  loads  // what is being made from what the source has
	lister lister // what the source has

	view     atomic.Pointer[view]
	followed followed      // what the node's follower of the source shares with this db
	noted    version.Facts // the facts at the last note
	restored bool          // begin has opened what is on the disk
}

// followed is what the follower of the source and the goroutine of a db share. The follower writes it.
type followed struct {
	atStart bool // it was in the source or on disk when the node started
	away    bool // the node had not joined when it was opened; then serving is what other nodes served when it had
	serving map[string]map[string]content.Content
	leaving bool // it is being removed

	listed   bool      // the source has listed it in this process, and did so last
	absences int       // consecutive listings of the source that lacked it while it was served
	absent   time.Time // the time of the first of them

	begun     chan struct{} // closed when the versions on disk are open
	refresh   chan struct{} // list the versions
	unlisted  chan struct{} // the first listing of the source failed or did not contain the db
	gone      chan struct{} // the db is to be removed
	lookAgain chan struct{} // the cluster has changed
	reloaded  chan struct{} // the configuration was applied again
}

func newDB(ctx context.Context, n *shared, name string) *db {
	d := &db{
		common: &common{
			node: n, name: name, log: n.log.With("db", name), set: version.NewSet(name), bg: background{messages: make(chan message)},
			records: make(map[content.Input]*record), live: make(map[content.Input]*live),
		},
		followed: followed{atStart: !n.looked.Load(), begun: make(chan struct{}), refresh: make(chan struct{}, 1), unlisted: make(chan struct{}, 1),
			gone: make(chan struct{}, 1), lookAgain: make(chan struct{}, 1), reloaded: make(chan struct{}, 1)},
	}
	d.memory.db = d.common
	d.judge = judge{db: d.common, memory: &d.memory, elsewhere: make(map[string][]store.Verdict)}
	d.keeper.db, d.keeper.judge = d.common, &d.judge
	d.loads = loads{db: d.common, keeper: &d.keeper, memory: &d.memory, running: make(map[content.Input]*loading)}
	d.lister.db, d.lister.loads, d.lister.memory = d.common, &d.loads, &d.memory
	d.bg.ctx, d.bg.cancel = context.WithCancel(ctx)
	d.events = n.o.Events.DB(name, d.log)
	d.view.Store(&view{node: n, db: name, atStart: d.followed.atStart})
	n.o.Metrics.Server.DB(name) // creates its counters at 0, so that the first event is visible as an increase
	return d
}

// run follows the database until ctx, which newDB was also given, ends or nothing is left of the
// database. Versions may still be open then, see close. serving is what other nodes serve; nil asks them.
func (d *db) run(ctx context.Context, serving map[string]map[string]content.Content) {
	d.begin(serving)
	close(d.followed.begun)
	select {
	case <-d.node.serving:
		if d.followed.away {
			d.facts.Taken = content.Input{}
			d.facts.Waiting = d.facts.Current.Name == "" // as at any start
			d.take(d.followed.serving)
		}
		for _, l := range d.live {
			l.advertiseOpen()
		}
	case <-ctx.Done():
		d.bg.stop()
		return
	}
	d.publish()
	d.keeper.settled = time.Now().Add(wholeTimeout)
	for !d.facts.Finished() && d.next() {
		d.decide()
		d.loads.setTerms()
		d.publish()
	}
	d.bg.stop()
}

// begin opens the versions on disk, and what other nodes serve. If the node is away, it does not if another node serves a newer one, or it is not known
// what was served here.
func (d *db) begin(serving map[string]map[string]content.Content) {
	defer d.publish()
	if err := d.node.o.Store.Sweep(d.name); err != nil {
		d.log.Warn("the local store could not be cleaned up", "error", err)
	}
	local, err := d.node.o.Store.Contents(d.name)
	if err != nil {
		d.log.Error("the local store cannot be read; versions in it will be loaded again", "error", err)
	}
	d.judge.rules = d.options().Gate
	d.facts.Waiting, d.facts.Keep = !d.followed.away && !d.node.alone(), d.options().KeepVersions
	former := d.memory.remember(local)
	if serving == nil {
		serving = d.node.askServing(d.bg.ctx, d.node.others())
	}
	d.take(serving)
	d.facts.Start(local, former)
	d.memory.failAgain()
	if d.followed.away && (d.facts.Likely || d.isBehind(serving)) {
		d.note()
	} else {
		d.decide()
	}
	d.restored = true
}

// next takes one message. It returns false at the end.
func (d *db) next() bool {
	select {
	case <-d.bg.ctx.Done():
		return false
	case m := <-d.bg.messages:
		m()
	case <-time.After(time.Until(d.bg.alarm)):
	case <-d.followed.refresh:
		d.lister.want(refresh)
	case <-d.followed.unlisted:
		d.lister.unreadable()
	case <-d.followed.gone:
		d.facts.Source, d.facts.Current = version.Gone, content.Input{}
		d.facts.DeleteAgain()
	case <-d.followed.reloaded:
		d.lister.retryAll()
	case <-d.followed.lookAgain:
		d.judge.followRules()
		if before := d.facts.Before(); before.Name != "" && d.live[before] == nil {
			// Other nodes may hold what was served before the restart. Without its manifest in the store, a refresh opens it.
			if _, err := d.node.o.Store.Dir(d.name, before); err == nil {
				d.facts.OpenAgain(before)
			}
		}
		d.keeper.logLost()
		if !d.isWhole() {
			d.facts.Unrecorded = false // the switch is tried again
		}
	case c := <-d.set.Corruptions():
		d.node.o.Metrics.Server.ChecksumFailure(d.name)
		d.log.Error("a block is damaged", "version", c.Input.Name,
			"partition", c.Partition, "error", c.Err)
		if d.set.Concerns(c) {
			d.keeper.damaged(c.Input, c.Partition)
		}
	}
	return true
}

// decide gathers the facts and does what follows from them, until nothing follows any more.
func (d *db) decide() {
	following, done := context.WithTimeout(d.bg.ctx, followTimeout)
	defer done()
	for {
		d.bg.alarm = time.Now().Add(maxPause)
		d.memory.saveAgain()
		d.loads.look()
		d.keeper.look()
		d.facts.Rejected = d.judge.rejected()
		again := d.note()
		if unopened := d.facts.Unopened(); len(unopened) > 0 {
			for _, in := range unopened {
				d.keeper.open(following, in)
			}
			continue
		}
		after, actions := version.Decide(d.facts)
		i := slices.IndexFunc(actions, func(a version.Action) bool { return a.Op == version.Activate })
		if i >= 0 && !d.memory.recordSwitch(actions[i], d.judge.totals(d.live[actions[i].Input])) {
			d.facts.Unrecorded = true
			continue
		}
		d.facts = after
		d.note()
		if len(actions) == 0 && !again {
			d.lister.look()
			return
		}
		for _, a := range actions {
			d.carryOut(a)
		}
	}
}

// note follows up how the facts have changed: it adds and drops records of versions, logs, lists older versions that may be needed, and plans retries
// of what has failed. again reports that verdicts may be other ones now.
func (d *db) note() (again bool) {
	before := d.noted
	d.noted = d.facts.Clone()
	for _, v := range d.facts.Entries {
		old, found := before.Entry(v.Input)
		log := d.log.With("version", v.Name)
		if !found {
			d.records[v.Input] = &record{created: time.Now(), found: time.Now()}
		}
		switch { // an entry may only be there to find out whether other nodes have the version
		case old.IsHere() || !v.IsHere():
		case d.restored:
			d.events.Found(v.Name, hasOther(before.Entries, v.Input))
		default: // what is found at the start was found before
			log.Info("version found")
		}
		switch {
		case !v.Failure.Waits || old.Failure.Waits:
		case errors.Is(d.records[v.Input].err, load.ErrIncomplete): // since it was listed
			log.Info("version is not complete after all", "reason", v.Failure.Reason)
		default:
			d.events.Failed(v.Name, d.facts.Status(v), v.Failure.Reason, old.Failure.Reason)
		}
		if v.Removal == version.Undeleted && v.Failure.Reason != old.Failure.Reason { // once: each refresh tries it again
			log.Error("the files of a version cannot be deleted; that is tried again", "error", v.Failure.Reason)
		}
		if v.Removal != version.Staying && old.Removal == version.Staying {
			log.Info("version superseded or withdrawn", "was", before.Status(old))
		}
		if found && old.Removal != version.Staying && v.Removal == version.Staying {
			log.Info("version is not removed, as it is needed after all")
		}
		held := v.Verdict == version.Held && old.Verdict != version.Held
		if held || v.Stalled && !old.Stalled { // older versions may be needed that have not been listed
			d.lister.want(repetition)
		}
		again = again || held
	}
	if len(d.facts.Rejected) > len(before.Rejected) { // likewise
		d.lister.want(repetition)
	}
	d.lister.retryLater(before)
	for _, v := range before.Entries {
		if _, found := d.facts.Entry(v.Input); !found {
			d.forget(v)
		}
	}
	return again || before.Deciding() && !d.facts.Deciding()
}

// forget drops what is known of a version that has no entry any more.
func (d *db) forget(v version.Entry) {
	f := d.records[v.Input]
	if f.following != nil {
		f.following.Stop()
	}
	delete(d.records, v.Input)
	d.memory.keepFailure(store.Failure{Input: v.Input})
	if v.Removal != version.Staying {
		d.events.Removed(v.Name, hasOther(d.facts.Entries, v.Input))
	}
}

// hasOther reports whether there is an entry of another input of the same version.
func hasOther(entries []version.Entry, in content.Input) bool {
	return slices.ContainsFunc(entries, func(v version.Entry) bool { return v.Name == in.Name && v.Input != in })
}

// close closes all versions after their readers have released them. It is called after run.
func (d *db) close() error {
	var errs []error
	for in := range d.live {
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
	case version.Load:
		d.loads.startLoad(a.Input)
	case version.Activate:
		d.activate(a.Input, a.Back)
	case version.Cancel:
		d.loads.running[a.Input].cancel()
	case version.Retire: // readable by name until endRetirement
		retired := d.live[a.Input]
		retired.v.Retire()
		retired.retired = time.Now()
	case version.Revive:
		d.live[a.Input].v.Revive()
	case version.Close:
		d.keeper.startClosing(a.Input)
	case version.Delete:
		d.bg.work(func() message {
			reason := ""
			if err := d.node.o.Store.Remove(d.name, a.Input); err != nil {
				reason = err.Error()
			}
			return func() { d.facts.Deleted(a.Input, reason) }
		})
	}
}

func (d *db) activate(in content.Input, back bool) {
	old, activate := d.set.Current(), d.set.Activate
	if before := d.facts.Served; old.Name == "" && in.Name < before.Name && d.facts.Pin.Allows(before.Name) && !d.facts.Likely {
		lost, _ := d.facts.Entry(before)
		d.log.Error("the version that was served before the restart is lost; an older one is served", "version", before.Name, "reason", lost.Failure.Reason)
	}
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
	l := d.live[in]
	l.Switched()
	d.judge.waitAnew()
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
		reasons := d.memory.pin.Reasons
		d.events.RolledBack(in.Name, old.Name, cmp.Or(reasons[old.Name], reasons[in.Name]))
	}
}

// publish publishes the state of a db for Node.Status and Node.Ready.
func (d *db) publish() {
	v := view{node: d.node, db: d.name, atStart: d.followed.atStart, away: d.followed.away, facts: d.facts.Clone(), serving: d.judge.servedContent(), tried: d.lister.tried() && !(d.memory.unread && len(d.facts.Listed) > 0),
		restored: d.restored, whole: d.keeper.seenWhole, pin: d.memory.pinStatus(), unfinished: d.last.Unfinished}
	for _, e := range v.facts.Entries {
		vv := versionView{Entry: e, status: v.facts.Status(e), known: *d.records[e.Input], failure: d.memory.failure(e.Input), loading: d.loads.running[e.Input],
			differs: d.last.Differs[e.Input]}
		if f := d.last.Wrong[e.Input]; f.Lasts {
			vv.wrong = f.Text
		} else if e.Input == v.facts.Current && d.memory.pin.Version == "" {
			vv.wrong = discovery.PassedOver(d.name, d.last.Names, e.Name)
		}
		if vv.loading != nil {
			vv.postponed = vv.loading.postponed
		}
		if l := d.live[e.Input]; l != nil {
			vv.live, vv.sizes, vv.verdict = l.v, l.v.Sizes(), l.judged.verdict
			vv.records = l.records()
		}
		v.versions = append(v.versions, vv)
	}
	d.view.Store(&v)
}
