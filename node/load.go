package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"sequins/cluster/transfer"
	"sequins/internal/content"
	"sequins/load"
	"sequins/load/loadproc"
	"sequins/shard"
	"sequins/store"
	"sequins/version"
)

// progressPeriod is the interval at which the progress of a load is logged.
const progressPeriod = 5 * time.Second

func (lo *loads) startLoad(in content.Input) {
	ctx, cancel := context.WithCancel(lo.db.bg.ctx)
	l := &loading{cancel: cancel, ordered: time.Now(), turn: lo.db.node.turns.Turn()}
	l.progress.Store(new(load.Snapshot))
	taken := lo.db.facts.Taken
	l.copies = lo.db.facts.WasServed(in) || in == taken
	l.alone = lo.memory.failure(in).Attempts >= passingAttempts || in.Name == taken.Name && in != taken
	if errors.Is(lo.db.records[in].err, load.ErrDied) {
		l.workers = 1 // each worker needs memory for the files that it reads
	}
	lo.running[in] = l
	lo.db.bg.work(func() message {
		defer cancel()
		err := lo.load(ctx, in, l)
		return func() { lo.ended(in, err) }
	})
}

// load waits for its turn, plans the version, and loads the missing partitions of this node.
func (lo *loads) load(ctx context.Context, in content.Input, l *loading) (err error) {
	n := lo.db.node
	defer l.turn.Leave()
	follow, done := context.WithTimeout(ctx, followTimeout)
	l.following = n.o.Cluster.Follow(follow, lo.db.name, in)
	done()
	l.fill = transfer.NewRun(n.taker(), lo.db.name, l.following, lo.db.log)
	l.stage.Store(waitingForTurn)
	lo.db.bg.send(func() {
		r := lo.db.records[in]
		r.following, r.divisions = l.following, nil
	})
	if err := l.turn.Wait(ctx); err != nil {
		return err
	}
	if err := lo.db.bg.ask(ctx, func() {
		l.stage.Store(planning)
		l.known = lo.knownManifest(in)
	}); err != nil {
		return err
	}
	ended := n.o.Metrics.Load.Begin(lo.db.name)
	defer func() {
		if errors.Is(err, load.ErrIncomplete) { // its job goes on, and nothing has failed
			ended(context.Canceled)
			return
		}
		ended(err)
	}()
	if l.known == nil {
		l.known = lo.db.manifestElsewhere(ctx, l.following, func(c content.Content) bool { return c.Input == in })
	}
	// If the source may lack the version, what is missing of it is copied from other nodes that have it; otherwise blocks that have not changed are
	// linked first, which needs the source.
	if l.copies && l.known != nil && n.taker() != nil && isElsewhere(l.following, l.known.Partitions) {
		if err := lo.loadPlanned(ctx, in, l, *l.known, nil); !errors.Is(err, transfer.ErrLeft) {
			return err
		}
	}
	return lo.loadProving(ctx, in, l)
}

// loadProving loads a version by one division after another until no record refutes the partitioner. Other nodes see the next division as soon as
// it is planned, so that all load by the same. Divisions only become later in the order of detection.
func (lo *loads) loadProving(ctx context.Context, in content.Input, l *loading) error {
	var refuted []shard.Partitioner
	for {
		m, err := lo.loadOnce(ctx, in, l, refuted)
		if errors.Is(err, transfer.ErrLeft) { // less each time
			l.stage.Store(waitingForTurn)
			lo.db.bg.send(func() {}) // so that the turn enters the queue again
			if err := l.turn.Wait(ctx); err != nil {
				return err
			}
			l.stage.Store(planning)
			continue
		}
		p, wrong := load.Refutes(err)
		if !wrong || slices.Contains(refuted, p) {
			return err
		}
		lo.db.log.Warn("a partitioner does not fit; the version is planned anew without it", "version", in.Name, "partitioner", p, "error", err)
		l.stage.Store(planning)
		l.known, l.passed = nil, &m
		refuted = append(refuted, p)
	}
}

// loadOnce plans a version, as configured unless its manifest is known, and loads the missing partitions of this node. It returns the plan.
func (lo *loads) loadOnce(ctx context.Context, in content.Input, l *loading, refuted []shard.Partitioner) (m store.Manifest, err error) {
	n, o := lo.db.node, lo.db.loadOptions()
	if l.workers > 0 {
		o.Workers = l.workers
	}
	if l.known != nil {
		o = o.PlannedBy(*l.known)
	}
	process, err := n.o.Loads.Start(ctx, loadproc.Job{DB: lo.db.name, Input: in, Options: o, Refuted: refuted, MemoryLimit: n.reloadable.Load().LoadMemoryLimit})
	if err != nil {
		return m, err
	}
	defer process.Close()
	if m, err = process.Plan(); err != nil {
		return m, err
	}
	if l.passed != nil && !load.Later(m, *l.passed) {
		by, err := shard.ParsePartitioner(m.Partitioner)
		return *l.passed, errors.Join(err, &load.PartitionError{Partitioner: by, Auto: true, File: "a record that another node has read"})
	}
	if l.known == nil && !l.alone {
		whole, err := lo.supersetElsewhere(ctx, l.following, m)
		if err != nil {
			return m, err
		}
		if whole != nil {
			lo.db.bg.send(func() { lo.takeSuperset(l, *whole) })
			return m, fmt.Errorf("%w: other nodes serve it with more files, which are taken from them", context.Canceled)
		}
	}
	return m, lo.loadPlanned(ctx, in, l, m, process)
}

// takeSuperset takes the manifest of a content that other nodes serve, and of whose files the source has a part, which l loads. The version is listed as
// that content from now on.
func (lo *loads) takeSuperset(l *loading, m store.Manifest) {
	d, in := lo.db, m.Content().Input
	l.refuted, d.facts.Taken = true, in
	if _, err := d.node.o.Store.Create(d.name, m); err != nil {
		d.log.Error("the manifest of a version that other nodes serve cannot be stored", "version", in.Name, "error", err)
		return
	}
	d.log.Warn("the source has a part of the files of a version that other nodes serve; it is copied from them", "version", in.Name)
	listed := slices.Clone(d.facts.Listed)
	for i := range listed {
		if listed[i].Name == in.Name {
			listed[i] = in
		}
	}
	d.last.Inputs, d.facts.Listed = listed, listed // the source may not have been listed yet, and is not by this
}

// loadPlanned loads or copies the missing partitions of this node by a manifest. Without a process it only copies.
func (lo *loads) loadPlanned(ctx context.Context, in content.Input, l *loading, m store.Manifest, process *loadproc.Process) error {
	var err error
	if asked := lo.db.bg.ask(ctx, func() { l.room, err = lo.goAhead(in, m) }); asked != nil {
		return asked
	}
	if err != nil {
		return err
	}
	return lo.loadBlocks(ctx, process, m, l)
}

// loadBlocks links those of the missing ones of the wanted partitions that have not changed, and loads or copies the others, if there is room
// for them. Without a process it only copies.
func (lo *loads) loadBlocks(ctx context.Context, process *loadproc.Process, m store.Manifest, l *loading) error {
	partitioner, err := shard.ParsePartitioner(m.Partitioner)
	if err != nil {
		return err
	}
	dir, err := lo.db.node.o.Store.Create(lo.db.name, m)
	if err != nil {
		return err
	}
	in, missing := m.Content().Input, l.room.Missing()
	published := func() {
		lo.db.bg.send(func() {
			if live := lo.db.live[in]; live != nil {
				lo.keeper.openBlocks(live)
			}
		})
	}
	logged := time.Now()
	progress := func(n loadproc.News) {
		l.progress.Store(&n.Snapshot)
		if time.Since(logged) >= progressPeriod && !n.Snapshot.Started.IsZero() {
			logged = time.Now()
			lo.db.log.Info("loading", append([]any{"version", in.Name}, loadproc.Figures(n.Snapshot, logged)...)...)
		}
	}
	l.stage.Store(copying)
	if process != nil {
		if err := process.Link(dir, l.room.Want, progress); err != nil {
			return err
		}
		if err := lo.claim(process, m, dir, l.room); err != nil {
			return err
		}
	}
	lo.db.log.Info("load started", "version", in.Name, "partitions", m.Partitions, "files", len(m.Files), "partitioner", m.Partitioner, "aligned", m.Aligned,
		"to_load", missing, "waited", time.Since(l.ordered).Round(time.Millisecond))
	published() // what has been linked, not before the load has started: it may be all
	job := transfer.Job{Dir: dir, Partitioner: partitioner, Want: l.room.Want, Published: published}
	if process == nil {
		l.stage.Store(fetching)
		return l.fill.Fill(ctx, job)
	}
	job.Published = func() {
		process.Copied()
		published()
	}
	left, err := dir.Missing(l.room.Want)
	if err != nil {
		return err
	}
	linked := slices.DeleteFunc(slices.Clone(l.room.Want), func(p int) bool { return slices.Contains(left, p) })
	job.Load = func(mine []int) error {
		// What is copied after it, other nodes may load behind other databases, whose loads may wait for this node.
		defer l.turn.Yield()
		all := slices.Sorted(slices.Values(slices.Concat(linked, mine))) // so that the figures are of both
		if len(all) < len(l.room.Want) {
			defer l.stage.Store(fetching)
		}
		return process.Load(dir, all, func(n loadproc.News) {
			progress(n)
			if len(n.Published) > 0 {
				published()
			}
		})
	}
	return l.fill.Fill(ctx, job)
}

// claim claims the room for the partitions that have no block yet. Without it, a version without any block is removed again.
func (lo *loads) claim(process *loadproc.Process, m store.Manifest, dir *store.Dir, room loadproc.Room) error {
	complete, err := dir.Complete()
	if err != nil {
		return err
	}
	for _, p := range complete {
		room.Held[p] = true
	}
	room.Freed = lo.db.node.o.Store.Freed(lo.db.name, room.Removable)
	err = process.Claim(m, room)
	if err != nil && len(complete) == 0 {
		err = errors.Join(err, lo.db.node.o.Store.Remove(lo.db.name, m.Content().Input))
	}
	return err
}

// goAhead returns the partitions to load and what is known of the room for them. The error is why the load must not continue with its manifest.
func (lo *loads) goAhead(in content.Input, m store.Manifest) (loadproc.Room, error) {
	if err := lo.enter(in, m); err != nil {
		return loadproc.Room{}, err
	}
	l := lo.db.live[in]
	switch {
	case l == nil:
		return loadproc.Room{}, context.Canceled // superseded meanwhile
	case l.content() != m.Content():
		return loadproc.Room{}, fmt.Errorf("version %s of %s is served by the partitioner %s with %d partitions, and would be loaded by %s with %d", in.Name, lo.db.name,
			l.manifest.Partitioner, l.manifest.Partitions, m.Partitioner, m.Partitions)
	}
	lo.running[in].damaged = slices.Collect(maps.Keys(l.damaged))
	return lo.room(l, l.Owned(l.manifest.Partitions)), nil
}

// ended records the end of a load. It opens the published blocks, whatever the result of the load.
func (lo *loads) ended(in content.Input, err error) {
	d, l, r := lo.db, lo.running[in], lo.db.records[in]
	r.unchanged += int(l.snapshot().Reused)
	r.err = err
	var failure version.Failure
	switch {
	case err == nil:
		lo.reportLoaded(in, l)
	case l.refuted:
	case errors.Is(err, context.Canceled):
		d.log.Info("load cancelled", "version", in.Name)
		failure.Reason = "cancelled"
	default:
		failure = failureOf(err)
	}
	lo.noteRoom(in, err)
	outdated := l.refuted
	if live := d.live[in]; live != nil {
		lo.keeper.openBlocks(live)
		lo.keeper.see(live)
		outdated = outdated || lo.db.isRefuted(live) || !slices.Equal(l.room.Want, live.Owned(live.manifest.Partitions))
		for p := range live.damaged { // while the load ran
			outdated = outdated || !live.open[p] && !slices.Contains(l.damaged, p)
		}
		if live.unopened != nil && failure.Reason == "" && !outdated {
			failure.Reason = "a block that is here cannot be opened: " + live.unopened.Error()
		}
	}
	delete(lo.running, in)
	d.facts.Loaded(in, failure, outdated)
}

// failureOf returns the failure of a load that has ended with an error.
func failureOf(err error) version.Failure {
	f := version.Failure{Reason: err.Error()}
	switch {
	case loadproc.FreeingHelps(err):
		f.Kind = version.NoRoom
	case load.Faulty(err):
		f.Kind = version.Faulty
	case load.Passing(err):
		f.Kind = version.Passing
	}
	return f
}
