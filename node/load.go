package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"sequins/load"
	"sequins/loadproc"
	"sequins/shard"
	"sequins/store"
	"sequins/tracing"
	"sequins/version"
)

// progressPeriod is the interval at which the progress of a load is logged.
const progressPeriod = 5 * time.Second

// Stages of a load.
const (
	waitingForTurn int32 = iota
	planning
	copying
)

// errChanged is the error for a served version whose blocks cannot be restored from the source.
var errChanged = errors.New("the version's files in the source are not those that it was loaded from")

// errFields is errChanged for a plan of an older release, which does not contain the fields.
var errFields = errors.New("the version was loaded with another key, value or partitioner than is configured for its database now; " +
	"configure those from before until a new version is there")

// changed returns why the blocks of a version with plan old cannot be restored by plan now.
func changed(old, now store.Manifest) error {
	now.Format, now.Partitioner, now.Aligned = old.Format, old.Partitioner, old.Aligned
	if old.SamePlan(now) {
		return errFields
	}
	return errChanged
}

// A loading is a running load.
type loading struct {
	cancel   context.CancelFunc
	progress atomic.Pointer[load.Snapshot] // nil before the first progress
	stage    atomic.Int32
	early    atomic.Bool // it has been planned, or is, while it waits for its turn
	ordered  time.Time
	want     []int           // partitions to load; written before the load's last message
	workers  int             // files that are read at a time; 0: as many as there are processors
	pinned   *store.Manifest // the plan by which the version is served; nil: use the configuration
	// following is nil until load follows the version, before its first message.
	following version.Following

	// The following fields belong to the db's goroutine.
	manifest    store.Manifest // the plan of the load
	partitioner shard.Partitioner
	refuted     bool // canceled because another node refuted the plan
}

// snapshot returns the progress of the load.
func (l *loading) snapshot() load.Snapshot {
	if s := l.progress.Load(); s != nil {
		return *s
	}
	return load.Snapshot{}
}

func (d *db) startLoad(name string) {
	ctx, cancel := context.WithCancel(d.ctx)
	l := &loading{cancel: cancel, ordered: time.Now(), pinned: d.pinned(name)}
	if d.facts[name].died {
		l.workers = 1 // each worker needs memory for the files that it reads
	}
	d.loads[name] = l
	d.work(func() message {
		defer cancel()
		return loaded{name, d.load(ctx, name, l)}
	})
}

// load waits for a slot, plans the version, and loads the missing partitions of this node.
func (d *db) load(ctx context.Context, name string, l *loading) (err error) {
	n := d.node
	select {
	case <-n.serving:
	case <-ctx.Done():
		return ctx.Err()
	}
	follow, done := context.WithTimeout(ctx, followTimeout)
	l.following = n.o.Cluster.Follow(follow, d.name, name)
	done()
	if err := d.waitForTurn(ctx, name, l); err != nil {
		return err
	}
	defer func() { <-n.slots }()
	l.stage.Store(planning)
	span := n.o.Tracer.Load(d.name, version.Name(name))
	defer func() {
		p := l.snapshot()
		span.End(tracing.Loaded{Files: p.FilesDone, Bytes: p.BytesDone, Records: p.Records, Partitions: p.PartitionsDone}, load.Outcome(err))
	}()
	return d.loadProving(ctx, name, l)
}

const (
	// turnPeriod is the first interval at which waitForTurn looks whether other nodes hold the version.
	turnPeriod = 10 * time.Second
	// maxPlanning limits an early plan, which takes one of few places. The first attempts have less
	// time, because the source may hang.
	maxPlanning = 10 * time.Minute
)

// waitForTurn waits for a slot. If other nodes hold the version meanwhile, it is planned without one, so
// that this node can switch to it together with them, and read it from them.
func (d *db) waitForTurn(ctx context.Context, name string, l *loading) error {
	early, cancel := context.WithCancel(ctx)
	defer cancel()
	timer := time.NewTimer(turnPeriod)
	defer timer.Stop()
	for period, limit := turnPeriod, startTimeout; ; {
		select {
		case d.node.slots <- struct{}{}:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
		}
		if l.following.Replicas(0) > 0 {
			within := limit // not limit, which changes
			d.work(func() message { return d.planEarly(early, name, l, within) })
			period, limit = min(2*period, maxBackoff), min(2*limit, maxPlanning)
		}
		timer.Reset(period)
	}
}

// planEarly plans a version that waits for its turn within a limit, unless that was done before.
func (d *db) planEarly(ctx context.Context, name string, l *loading, limit time.Duration) message {
	if !l.early.CompareAndSwap(false, true) {
		return plannedEarly{name: name}
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	m, err := d.plan(ctx, name, l.following, l.pinned)
	l.early.Store(err == nil)
	return plannedEarly{name, l, m, err == nil}
}

// plannedEarly reports the plan of a version that waits for its turn to be loaded, if there is one.
type plannedEarly struct {
	name     string
	loading  *loading
	manifest store.Manifest
	planned  bool
}

// tell implements message.
func (p plannedEarly) tell(d *db) {
	l := p.loading
	if !p.planned || l != d.loads[p.name] || d.live[p.name] != nil {
		return
	}
	partitioner, err := shard.ParsePartitioner(p.manifest.Partitioner)
	if err != nil {
		return // the load will fail of it
	}
	l.manifest, l.partitioner = p.manifest, partitioner
	d.handle(version.Planned{Version: p.name})
}

// loadProving loads a version with one plan after another until no record refutes the partitioner of
// the plan. It publishes refuted partitioners to other nodes, so that all nodes make the same plan.
func (d *db) loadProving(ctx context.Context, name string, l *loading) error {
	var refuted []shard.Partitioner
	for {
		err := d.loadOnce(ctx, name, l, refuted)
		p, wrong := load.Refutes(err)
		if !wrong || slices.Contains(refuted, p) {
			return err
		}
		d.log.Warn("a partitioner does not fit; the version is planned anew without it", "version", name, "partitioner", p, "error", err)
		l.following.Refute(p.String())
		refuted = append(refuted, p)
		l.stage.Store(planning)
	}
}

// pinned returns the plan by which a version is served, or was before a restart; later loads use the
// same fields, whatever is configured. It is nil for other versions, and for those without a plan.
func (d *db) pinned(name string) *store.Manifest {
	if name != d.state.Current && name != d.state.Served {
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
	process, err := d.node.startProcess(ctx, d.name, version.Name(name), l.workers, l.pinned, append(d.refuted(name, l.following), refuted...))
	if err != nil {
		return err
	}
	defer process.Close()
	m, err := process.Plan()
	if err != nil {
		return err
	}
	partitioner, err := shard.ParsePartitioner(m.Partitioner)
	if err != nil {
		return err
	}
	m.Version, m.Created = name, time.Time{} // set by the store
	answer := make(chan goAhead, 1)
	d.send(planned{name, m, partitioner, answer})
	select {
	case a := <-answer:
		l.want, err = a.want, a.err
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		return err
	}
	return d.loadBlocks(process, m, l)
}

// loadBlocks makes the process load the missing ones of the wanted partitions.
func (d *db) loadBlocks(process *loadproc.Process, m store.Manifest, l *loading) (err error) {
	ended := d.node.o.Metrics.Load.Begin(d.name)
	defer func() {
		if _, refuted := load.Refutes(err); refuted {
			ended(nil) // the load continues
			return
		}
		ended(err)
	}()
	m.Created = time.Now() // used by the first load by this plan
	dir, err := d.node.o.Store.Create(d.name, m.Version, m)
	if err != nil {
		return err
	}
	l.stage.Store(copying)
	logged := time.Now()
	return process.Load(dir, l.want, func(n loadproc.News) {
		l.progress.Store(&n.Snapshot)
		if len(n.Published) > 0 {
			d.send(published{m.Version})
		}
		if time.Since(logged) >= progressPeriod {
			logged = time.Now()
			d.log.Info("loading", append([]any{"version", m.Version}, figures(n.Snapshot, logged)...)...)
		}
	})
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
		p.answer <- goAhead{err: changed(now.manifest, p.manifest)}
	default:
		d.log.Info("load started", "version", p.name, "partitions", p.manifest.Partitions,
			"files", len(p.manifest.Files), "partitioner", p.manifest.Partitioner, "aligned", p.manifest.Aligned,
			"waited", time.Since(l.ordered).Round(time.Millisecond))
		p.answer <- goAhead{want: now.Owned(now.v.Held())}
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

// figures returns log attributes of the progress of a load: amounts, rate and estimated remaining time.
func figures(s load.Snapshot, now time.Time) []any {
	all := []any{
		"files", fmt.Sprintf("%d/%d", s.FilesDone, s.Files), "bytes", fmt.Sprintf("%d/%d", s.BytesDone, s.Bytes),
		"partitions", fmt.Sprintf("%d/%d", s.PartitionsDone, s.Partitions), "records", s.Records,
		"took", now.Sub(s.Started).Round(time.Millisecond),
	}
	p := progress(s, now)
	if p == nil || p.RecordsPerSecond == 0 {
		return all
	}
	all = append(all, "records_per_second", int64(p.RecordsPerSecond), "bytes_per_second", int64(p.BytesPerSecond))
	if !p.ETA.IsZero() {
		all = append(all, "left", max(0, p.ETA.Sub(now)).Round(time.Second))
	}
	return all
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
	ended := version.LoadEnded{Version: m.name}
	switch {
	case m.err == nil:
		d.log.Info("load finished", append([]any{"version", m.name}, figures(l.snapshot(), time.Now())...)...)
	case l.refuted:
		ended.Outdated = true
	case errors.Is(m.err, context.Canceled):
		d.log.Info("load cancelled", "version", m.name)
		ended.Err = "cancelled"
	default:
		ended.Err, ended.Faulty, ended.Passing = m.err.Error(), load.Faulty(m.err), load.Passing(m.err)
		ended.NoRoom = load.Outcome(m.err) == load.DiskFull
	}
	if live := d.live[m.name]; live != nil {
		d.openBlocks(live)
		d.listBlocks(live)
		d.handle(d.seen(live))
		ended.Outdated = ended.Outdated || d.isRefuted(live) || !slices.Equal(l.want, live.Owned(live.v.Held()))
	}
	delete(d.loads, m.name)
	d.facts[m.name].died = errors.Is(m.err, load.ErrDied)
	d.handle(ended)
	d.releaseSurplus(m.name) // which waits for the end of loads
}
