package node

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"sequins/fill"
	"sequins/load"
	"sequins/loadproc"
	"sequins/shard"
	"sequins/store"
	"sequins/tracing"
	"sequins/turns"
	"sequins/version"
)

// progressPeriod is the interval at which the progress of a load is logged.
const progressPeriod = 5 * time.Second

// Stages of a load that has no turn yet, or has one.
const (
	waitingForTurn int32 = iota
	planning
	copying
	fetching
)

// A loading is a running load.
type loading struct {
	cancel   context.CancelFunc
	progress atomic.Pointer[load.Snapshot] // nil before the first progress
	stage    atomic.Int32
	early    atomic.Bool // it has been planned, or is, while it waits for its turn
	ordered  time.Time
	turn     *turns.Turn
	want     []int           // partitions to load; written before the load's last message
	workers  int             // files that are read at a time; 0: as many as there are processors
	pinned   *store.Manifest // the plan by which the version is served; nil: use the configuration
	// following is nil until load follows the version, before its first message.
	following version.Following
	fill      *fill.Run // set with following

	// The following fields belong to the db's goroutine.
	inTurn      bool           // it waits for its turn, or has it; following is set
	manifest    store.Manifest // the plan of the load
	partitioner shard.Partitioner
	refuted     bool // canceled because another node refuted the plan
	reported    bool // see reportLoaded
}

// snapshot returns the progress of the load.
func (l *loading) snapshot() load.Snapshot {
	if s := l.progress.Load(); s != nil {
		return *s
	}
	return load.Snapshot{}
}

// outcome returns the progress of a load that has ended. If no file was read, because all blocks came from other nodes, it began when
// it was ordered.
func (l *loading) outcome() load.Snapshot {
	s := l.snapshot()
	if s.Started.IsZero() {
		s.Started = l.ordered
	}
	return s
}

func (d *db) startLoad(name string) {
	ctx, cancel := context.WithCancel(d.ctx)
	l := &loading{cancel: cancel, ordered: time.Now(), turn: d.node.turns.Turn(), pinned: d.pinned(name)}
	if d.facts[name].died {
		l.workers = 1 // each worker needs memory for the files that it reads
	}
	d.loads[name] = l
	if now, looked := d.last.Inputs[version.Name(name)]; looked {
		d.facts[name].retries.input = now
	}
	d.work(func() message {
		defer cancel()
		return loaded{name, d.load(ctx, name, l)}
	})
}

// load waits for its turn, plans the version, and loads the missing partitions of this node.
func (d *db) load(ctx context.Context, name string, l *loading) (err error) {
	n := d.node
	defer l.turn.Leave()
	select {
	case <-n.serving:
	case <-ctx.Done():
		return ctx.Err()
	}
	follow, done := context.WithTimeout(ctx, followTimeout)
	l.following = n.o.Cluster.Follow(follow, d.name, name)
	done()
	l.fill = fill.New(fill.Options{Transfer: n.taker(), DB: d.name, Version: version.Name(name), Following: l.following, Logger: d.log})
	if err := d.waitForTurn(ctx, name, l); err != nil {
		return err
	}
	l.stage.Store(planning)
	d.send(inTurn{l})
	ended := n.o.Metrics.Load.Begin(d.name)
	defer func() {
		if errors.Is(err, load.ErrIncomplete) { // its job goes on, and nothing has failed
			ended(context.Canceled)
			return
		}
		ended(err)
	}()
	span := n.o.Tracer.Load(d.name, version.Name(name))
	defer func() {
		p := l.snapshot()
		span.End(tracing.Loaded{Files: p.FilesDone, Bytes: p.BytesDone, Records: p.Records, Partitions: p.PartitionsDone}, load.Outcome(err))
	}()
	if err := d.copyPinned(ctx, name, l); !errors.Is(err, fill.ErrLeft) {
		return err
	}
	return d.loadProving(ctx, name, l)
}

// copyPinned copies what is missing of a version that is served, or was before a restart, from other nodes. It needs no source.
func (d *db) copyPinned(ctx context.Context, name string, l *loading) error {
	if l.pinned == nil || d.node.taker() == nil || !version.OnAnyNode(l.following, l.pinned.Partitions) {
		return fill.ErrLeft
	}
	return d.loadPlanned(ctx, name, l, *l.pinned, nil)
}

// loadProving loads a version with one plan after another until no record refutes the partitioner of
// the plan. It publishes refuted partitioners to other nodes, so that all nodes make the same plan.
func (d *db) loadProving(ctx context.Context, name string, l *loading) error {
	var refuted []shard.Partitioner
	for {
		err := d.loadOnce(ctx, name, l, refuted)
		if errors.Is(err, fill.ErrLeft) {
			l.stage.Store(planning)
			continue // less is left each time
		}
		p, wrong := load.Refutes(err)
		if !wrong || slices.Contains(refuted, p) {
			return err
		}
		d.log.Warn("a partitioner does not fit; the version is planned anew without it", "version", name, "partitioner", p, "error", err)
		l.stage.Store(planning) // before this node learns of its own refutation
		l.following.Refute(p.String())
		refuted = append(refuted, p)
	}
}

// pinned returns the plan by which a version is served, or was; later loads use the
// same fields, whatever is configured. It is nil for other versions, and for those without a plan.
func (d *db) pinned(name string) *store.Manifest {
	if !d.state.WasServed(name) {
		return nil
	}
	if l := d.live[name]; l != nil {
		return &l.manifest
	}
	dir, err := d.node.o.Store.Dir(d.name, name)
	if err != nil {
		return nil
	}
	m := dir.Manifest()
	return &m
}

// loadOnce plans a version and loads the missing partitions of this node.
func (d *db) loadOnce(ctx context.Context, name string, l *loading, refuted []shard.Partitioner) error {
	announced := d.node.transfer.Planning(d.name, version.Name(name))
	defer announced.End()
	process, err := d.node.startProcess(ctx, d.name, version.Name(name), l.workers, l.pinned, append(d.refuted(name, l.following), refuted...))
	if err != nil {
		return err
	}
	defer process.Close()
	m, err := process.Plan()
	if err != nil {
		return err
	}
	announced.End()
	return d.loadPlanned(ctx, name, l, m, process)
}

// loadPlanned loads or copies the missing partitions of this node by a plan. Without a process it only copies.
func (d *db) loadPlanned(ctx context.Context, name string, l *loading, m store.Manifest, process *loadproc.Process) error {
	partitioner, err := shard.ParsePartitioner(m.Partitioner)
	if err != nil {
		return err
	}
	m.Version, m.Created = name, time.Time{} // set by the store
	answer := make(chan goAhead, 1)
	d.send(planned{name, m, partitioner, answer})
	select {
	case a := <-answer:
		if a.err != nil {
			return a.err
		}
		l.want = a.want
		return d.loadBlocks(ctx, process, m, partitioner, l, a.room)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// loadBlocks links those of the missing ones of the wanted partitions that have not changed, and loads or copies the others, if there is room
// for them. Without a process it only copies.
func (d *db) loadBlocks(ctx context.Context, process *loadproc.Process, m store.Manifest, partitioner shard.Partitioner, l *loading, room loadproc.Room) error {
	m.Created = time.Now() // used by the first load by this plan
	dir, err := d.node.o.Store.Create(d.name, m.Version, m)
	if err != nil {
		return err
	}
	l.stage.Store(copying)
	job := fill.Job{Dir: dir, Partitioner: partitioner, Want: l.want, Published: func() { d.send(published{m.Version}) }}
	if process == nil {
		return l.fill.Fill(ctx, job)
	}
	if err := process.Link(dir, l.want, d.newsOf(m.Version, l, func(int64) {})); err != nil {
		return err
	}
	if err := d.claim(process, m, dir, room); err != nil {
		return err
	}
	missing, err := dir.Missing(l.want)
	if err != nil {
		return err
	}
	linked := slices.DeleteFunc(slices.Clone(l.want), func(p int) bool { return slices.Contains(missing, p) })
	job.Load = func(mine []int, progress func(int64)) error {
		defer process.Close()
		all := slices.Sorted(slices.Values(slices.Concat(linked, mine))) // so that the figures are of both
		if len(all) < len(l.want) {
			defer l.stage.Store(fetching)
		}
		return process.Load(dir, all, d.newsOf(m.Version, l, progress))
	}
	return l.fill.Fill(ctx, job)
}

// claim claims the room for the partitions that have no block yet. Without it, a version without any block is removed again.
func (d *db) claim(process *loadproc.Process, m store.Manifest, dir *store.Dir, room loadproc.Room) error {
	complete, err := dir.Complete()
	if err != nil {
		return err
	}
	for _, p := range complete {
		room.Held[p] = true
	}
	room.Freed = d.node.o.Store.Freed(d.name, room.Removable)
	err = process.Claim(m, room)
	if err != nil && len(complete) == 0 {
		err = errors.Join(err, d.node.o.Store.Remove(d.name, m.Version))
	}
	return err
}

// newsOf returns a function that passes the news of a load on.
func (d *db) newsOf(name string, l *loading, progress func(int64)) func(loadproc.News) {
	logged := time.Now()
	return func(n loadproc.News) {
		l.progress.Store(&n.Snapshot)
		progress(n.Snapshot.BytesDone + n.Snapshot.Records + n.Snapshot.PartitionsDone)
		if len(n.Published) > 0 {
			d.send(published{name})
		}
		if time.Since(logged) >= progressPeriod {
			logged = time.Now()
			d.log.Info("loading", append([]any{"version", name}, loadproc.Figures(n.Snapshot, logged)...)...)
		}
	}
}

// published reports that a load has published partitions.
type published struct{ name string }

// tell implements message. It makes the partitions readable.
func (p published) tell(d *db) {
	if live := d.live[p.name]; live != nil && d.openBlocks(live) {
		d.handle(d.seen(live))
	}
}

// planned asks whether a load may continue with its plan.
type planned struct {
	name        string
	manifest    store.Manifest
	partitioner shard.Partitioner
	answer      chan<- goAhead
}

// goAhead contains the partitions to load, or the reason why the load must stop.
type goAhead struct {
	want []int
	room loadproc.Room
	err  error
}

// tell implements message.
func (p planned) tell(d *db) {
	l := d.loads[p.name]
	l.manifest, l.partitioner = p.manifest, p.partitioner
	old := d.live[p.name]
	d.handle(version.Planned{Version: p.name, Changed: old != nil && !old.manifest.SamePlan(p.manifest)})
	switch now := d.live[p.name]; {
	case now == nil:
		p.answer <- goAhead{err: context.Canceled} // superseded meanwhile
	case !now.manifest.SamePlan(p.manifest):
		if p.name == d.state.Current && !d.isWhole() {
			d.changed = p.name
			d.startListing(true)
		}
		p.answer <- goAhead{err: load.Changed(now.manifest, p.manifest)}
	default:
		if err := d.loadOrigin(p.name); err != nil {
			p.answer <- goAhead{err: err}
			return
		}
		want := now.Owned(now.v.Held())
		room := d.room(now, want)
		d.log.Info("load started", "version", p.name, "partitions", p.manifest.Partitions,
			"files", len(p.manifest.Files), "partitioner", p.manifest.Partitioner, "aligned", p.manifest.Aligned,
			"to_load", room.Missing(), "waited", time.Since(l.ordered).Round(time.Millisecond))
		p.answer <- goAhead{want: want, room: room}
		d.abandonRefuted(p.name)
	}
}

// prepare adds a version to the set with the plan of its load.
func (d *db) prepare(name string) version.Event {
	running := d.loads[name]
	l := d.newLive(running.manifest, running.partitioner, running.following)
	d.insert(l)
	d.openBlocks(l)
	return d.seen(l)
}

// reportLoaded records that the partitions of this node are loaded, once.
func (d *db) reportLoaded(name string, l *loading) {
	if !l.reported {
		l.reported = true
		d.events.Loaded(name, loadproc.Figures(l.outcome(), time.Now())...)
	}
}

// loaded reports the end of a load.
type loaded struct {
	name string
	err  error
}

// tell implements message. It opens the published blocks, whatever the result of the load.
func (m loaded) tell(d *db) {
	l := d.loads[m.name]
	if l.following != nil {
		d.facts[m.name].following = l.following
	}
	d.facts[m.name].unchanged += int(l.snapshot().Reused)
	ended := version.LoadEnded{Version: m.name}
	d.facts[m.name].incomplete = errors.Is(m.err, load.ErrIncomplete)
	switch {
	case m.err == nil:
		d.reportLoaded(m.name, l)
	case l.refuted:
		ended.Outdated = true
	case errors.Is(m.err, context.Canceled):
		d.log.Info("load cancelled", "version", m.name)
		ended.Err = "cancelled"
	default:
		ended.Err, ended.Faulty, ended.Passing = m.err.Error(), load.Faulty(m.err), load.Passing(m.err)
		ended.NoRoom = loadproc.FreeingHelps(m.err)
	}
	d.noteRoom(m.name, m.err)
	if live := d.live[m.name]; live != nil {
		d.openBlocks(live)
		d.listBlocks(live)
		d.handle(d.seen(live))
		ended.Outdated = ended.Outdated || d.isRefuted(live) || !slices.Equal(l.want, live.Owned(live.v.Held()))
	}
	delete(d.loads, m.name)
	d.facts[m.name].died, d.facts[m.name].outcome = errors.Is(m.err, load.ErrDied), load.Outcome(m.err)
	d.handle(ended)
	d.look(m.name) // the gate waits for the end of loads, as releaseSurplus does
	d.releaseSurplus(m.name)
}
