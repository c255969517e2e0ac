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

// progressPeriod is how often a load that runs is heard of in the log.
const progressPeriod = 5 * time.Second

// Stages of a load.
const (
	waitingForTurn int32 = iota
	planning
	copying
)

// errChanged is why a version cannot be mended that clients are answered from.
var errChanged = errors.New("the version's files in the source are not those that it was loaded from, and a version must never change")

// errFields is the same for a version whose plan does not tell its fields, as it was made by an older release.
var errFields = errors.New("the version was loaded with another key, value or partitioner than is configured for its database now; " +
	"configure those from before until a new version is there")

// changed returns why a version of plan old cannot be mended by plan now.
func changed(old, now store.Manifest) error {
	now.Format, now.Partitioner, now.Aligned = old.Format, old.Partitioner, old.Aligned
	if old.SamePlan(now) {
		return errFields
	}
	return errChanged
}

// A loading is a load that has not ended.
type loading struct {
	cancel   context.CancelFunc
	progress atomic.Pointer[load.Snapshot] // nil before the first
	stage    atomic.Int32
	ordered  time.Time
	want     []int           // the partitions to be loaded; written before the load's last message
	workers  int             // files that are read at a time; 0: as many as there are processors
	pinned   *store.Manifest // the plan by which the version is served; nil: it is planned as configured

	// The rest belongs to the db's goroutine.
	manifest    store.Manifest // of its plan
	partitioner shard.Partitioner
	refuted     bool // another node has refuted it: it was cancelled, to begin anew
}

// snapshot returns how far the load is.
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

// load waits for its turn, finds out how the version is to be loaded, and loads
// what is missing of this node's partitions.
func (d *db) load(ctx context.Context, name string, l *loading) (err error) {
	n := d.node
	select {
	case <-n.serving:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case n.slots <- struct{}{}:
		defer func() { <-n.slots }()
	case <-ctx.Done():
		return ctx.Err()
	}
	l.stage.Store(planning)
	span := n.o.Tracer.Load(d.name, version.Name(name))
	defer func() {
		p := l.snapshot()
		span.End(tracing.Loaded{Files: p.FilesDone, Bytes: p.BytesDone, Records: p.Records, Partitions: p.PartitionsDone}, load.Outcome(err))
	}()
	follow, done := context.WithTimeout(ctx, followTimeout)
	n.o.Cluster.Follow(follow, d.name, name)
	done()
	return d.loadProving(ctx, name, l)
}

// loadProving loads a version by one plan after another until no record refutes
// the partitioner that the plan has found. What is refuted is told to the other
// nodes, so that all come to the same plan.
func (d *db) loadProving(ctx context.Context, name string, l *loading) error {
	var refuted []shard.Partitioner
	for {
		err := d.loadOnce(ctx, name, l, refuted)
		p, wrong := load.Refutes(err)
		if !wrong || slices.Contains(refuted, p) {
			return err
		}
		d.log.Warn("a partitioner does not fit; the version is planned anew without it", "version", name, "partitioner", p, "error", err)
		d.node.o.Cluster.Refute(d.name, name, p.String())
		refuted = append(refuted, p)
		l.stage.Store(planning)
	}
}

// pinned returns the plan by which a version is served, or was before a restart. What is loaded of it later is made
// from the same fields, whatever is configured meanwhile. It is nil for other versions, and for those without a plan.
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

// loadOnce plans a version and loads what is missing of this node's partitions.
func (d *db) loadOnce(ctx context.Context, name string, l *loading, refuted []shard.Partitioner) error {
	process, err := d.node.startProcess(ctx, d.name, version.Name(name), l.workers, l.pinned, append(d.refuted(name), refuted...))
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
	m.Version, m.Created = name, time.Time{} // the store says when it was
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

// loadBlocks has the process make what is missing of the wanted partitions.
func (d *db) loadBlocks(process *loadproc.Process, m store.Manifest, l *loading) (err error) {
	ended := d.node.o.Metrics.Load.Begin(d.name)
	defer func() {
		if _, refuted := load.Refutes(err); refuted {
			ended(nil) // the version goes on loading
			return
		}
		ended(err)
	}()
	m.Created = time.Now() // if it is the first load by this plan
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

// published tells that a load has published partitions.
type published struct{ name string }

// tell implements message. It makes them readable.
func (p published) tell(d *db) {
	if live := d.live[p.name]; live != nil && d.openBlocks(live) {
		d.handle(d.seen(live))
	}
}

// planned asks whether a load may go on with its plan.
type planned struct {
	name        string
	manifest    store.Manifest
	partitioner shard.Partitioner
	answer      chan<- goAhead
}

// goAhead says which partitions a load is to load, or why it is not to.
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
		p.answer <- goAhead{err: context.Canceled} // it was superseded meanwhile
	case !now.manifest.SamePlan(p.manifest):
		p.answer <- goAhead{err: changed(now.manifest, p.manifest)}
	default:
		d.log.Info("load started", "version", p.name, "partitions", p.manifest.Partitions,
			"files", len(p.manifest.Files), "partitioner", p.manifest.Partitioner, "aligned", p.manifest.Aligned,
			"waited", time.Since(l.ordered).Round(time.Millisecond))
		p.answer <- goAhead{want: d.owned(now)}
	}
}

// prepare puts a version into the set by the plan that a load has made.
func (d *db) prepare(name string) version.Event {
	l := d.newLive(d.loads[name].manifest, d.loads[name].partitioner)
	d.insert(l)
	d.openBlocks(l)
	return d.seen(l)
}

// figures are how far a load is, for the log: what is done of what there is, at what rate, and how long the
// rest will take.
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

// loaded says that a load has ended.
type loaded struct {
	name string
	err  error
}

// tell implements message. What was published stays, whatever the end, and is
// opened.
func (m loaded) tell(d *db) {
	l := d.loads[m.name]
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
	}
	if live := d.live[m.name]; live != nil {
		d.openBlocks(live)
		d.handle(d.seen(live))
		ended.Outdated = ended.Outdated || d.isRefuted(live) || !slices.Equal(l.want, d.owned(live))
	}
	delete(d.loads, m.name)
	d.facts[m.name].died = errors.Is(m.err, load.ErrDied)
	d.handle(ended)
	d.giveUp(m.name) // which waits for loads
}
