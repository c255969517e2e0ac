package node

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"time"

	"sequins/blocks"
	"sequins/gate"
	"sequins/shard"
	"sequins/store"
	"sequins/version"
)

// live is a version in the set and its state in the node.
type live struct {
	v *version.Version
	version.Following
	manifest store.Manifest // the plan of its blocks
	open     []bool         // by partition: its local block is open
	records  []int64        // by partition
	bytes    []int64
	known    []blocks.Known // of small blocks, by partition
	unlisted bool           // known is not what the store lists

	// damaged are the partitions whose block is damaged, and read until another one is loaded: whether they
	// have been withdrawn. returning reports whether a timer to advertise some of them again is running.
	damaged   map[int]bool
	returning bool

	retirement *retirement // nil unless retired

	// asked: the other nodes were asked whether they have held it; asking, until they have answered. heldBy is the answer.
	asked, asking bool
	heldBy        string

	verdict   gate.Verdict
	measuring bool // its figures are being read
	shadow    *gate.Shadow
	shadowEnd bool // ShadowTimeout is over

	released map[int]time.Time // surplus partitions and the time of their release, see releaseSurplus
	waiting  bool              // a timer for the first of them is running
}

func (d *db) newLive(m store.Manifest, partitioner shard.Partitioner, f version.Following) *live {
	d.gate.Forget(m.Version) // the figures of its blocks by another plan
	l := &live{
		v: version.New(version.Info{
			DB: d.name, Name: m.Version, Partitions: m.Partitions, Partitioner: partitioner,
			LastModified: m.LastModified, Plan: m.PlanHash(), Following: f,
		}),
		Following: f,
		manifest:  m,
		open:      make([]bool, m.Partitions),
		records:   make([]int64, m.Partitions),
		bytes:     make([]int64, m.Partitions),
		damaged:   make(map[int]bool),
		known:     make([]blocks.Known, m.Partitions),
		released:  make(map[int]time.Time),
	}
	if d.rules.IsZero() {
		l.verdict.State = gate.Passed
	}
	l.v.Withhold(!l.verdict.MayServe())
	return l
}

// forget makes the next openBlocks open the block of a partition again.
func (l *live) forget(partition int) {
	if 0 <= partition && partition < len(l.open) {
		l.open[partition] = false
	}
}

// size returns the records and bytes of the open blocks.
func (l *live) size() (records, bytes int64) {
	for p := range l.records {
		records += l.records[p]
		bytes += l.bytes[p]
	}
	return records, bytes
}

// seen returns the state of a version for the state machine.
func (d *db) seen(l *live) version.Seen {
	held, refuted := l.v.Held(), d.isRefuted(l)
	verdict := d.judge(l, held)
	complete := !slices.ContainsFunc(l.Owned(held), func(p int) bool {
		return p < 0 || p >= len(held) || !held[p]
	})
	return version.Seen{Version: l.v.Info().Name, Complete: complete && !refuted,
		Replicated: !refuted && verdict.MayServe() && d.replicated(l.Following, held), Readable: version.IsReadable(l.Following, held),
		Whole: !refuted && version.IsWhole(l.Following, held), Held: verdict.State == gate.Held, Unjudged: verdict.State == gate.Pending}
}

// replicated reports whether the cluster holds enough of a version to switch to it.
func (d *db) replicated(f version.Following, held []bool) bool {
	return len(f.Missing(held, d.node.o.MinReplication)) == 0
}

// followTimeout limits the first lookups of the replicas of all versions that are opened together.
// Later updates arrive asynchronously.
const followTimeout = 10 * time.Second

// open adds a version to the set if it can be read without a load: because there are local blocks, or
// because other nodes hold it.
func (d *db) open(name string) version.Event {
	ctx, cancel := context.WithDeadline(d.ctx, d.followBy)
	f := d.node.o.Cluster.Follow(ctx, d.name, name)
	cancel()
	d.facts[name].following = f
	l, err := d.openLocal(name, f)
	if err == nil && l == nil {
		l, err = d.openRemote(name, f)
	}
	if err != nil {
		d.log.Warn("version cannot be opened; it will be loaded again", "version", name, "error", err)
	}
	if l == nil {
		return version.Absent{Version: name}
	}
	d.insert(l)
	d.listBlocks(l)
	if created := l.manifest.Created; !created.IsZero() {
		d.facts[name].created = created
	}
	seen := d.seen(l)
	d.log.Info("version opened", "version", name, "partitions", len(l.open), "complete", seen.Complete)
	return seen
}

// insert adds a version to the set, replacing one with the same name.
func (d *db) insert(l *live) {
	name := l.v.Info().Name
	if old := d.set.Prepare(l.v); old != nil {
		l.Withdraw()
		d.closeLater(old, func() {})
	}
	l.v.SetPlan()
	d.live[name] = l
	for _, partitioner := range l.manifest.Refuted {
		l.Refute(partitioner)
	}
	if d.node.admitted.Load() {
		l.tell()
	}
}

// Advertise advertises a partition if the gate lets the version pass.
func (l *live) Advertise(partition int) {
	if l.verdict.MayServe() {
		l.Following.Advertise(partition)
	}
}

// tell advertises the open partitions of a version.
func (l *live) tell() {
	for p, open := range l.open {
		if open {
			l.Advertise(p)
		}
	}
}

// openLocal opens the valid blocks of a version; nil if there are none.
func (d *db) openLocal(name string, f version.Following) (*live, error) {
	dir, err := d.node.o.Store.Dir(d.name, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	partitioner, err := shard.ParsePartitioner(dir.Manifest().Partitioner)
	if err != nil {
		return nil, err
	}
	l := d.newLive(dir.Manifest(), partitioner, f)
	if d.openBlocks(l) {
		return l, nil
	}
	d.closeLater(l.v, func() {})
	return nil, nil
}

// openRemote returns a version without local blocks; nil if other nodes do not hold every partition,
// or, if the plan is in the store, at least one. Without a stored plan the version is planned from the
// source, if that is readable.
func (d *db) openRemote(name string, f version.Following) (*live, error) {
	if dir, err := d.node.o.Store.Dir(d.name, name); err == nil {
		m := dir.Manifest()
		held := make([]bool, m.Partitions)
		f.SetPlan(m.PlanHash(), held)
		if version.IsReadable(f, held) {
			return d.remote(m, f)
		}
	}
	if !d.state.Read || f.Replicas(0) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(d.ctx, startTimeout)
	defer cancel()
	m, err := d.plan(ctx, name, f, d.pinned(name))
	if err != nil {
		return nil, err
	}
	held := make([]bool, m.Partitions)
	f.SetPlan(m.PlanHash(), held)
	if !d.replicated(f, held) {
		return nil, nil
	}
	return d.remote(m, f)
}

// remote returns a version without blocks for a plan.
func (d *db) remote(m store.Manifest, f version.Following) (*live, error) {
	partitioner, err := shard.ParsePartitioner(m.Partitioner)
	if err != nil {
		return nil, err
	}
	return d.newLive(m, partitioner, f), nil
}

// plan plans a version without loading it, by the fields of pinned if that is not nil.
func (d *db) plan(ctx context.Context, name string, f version.Following, pinned *store.Manifest) (store.Manifest, error) {
	select {
	case d.node.plans <- struct{}{}:
		defer func() { <-d.node.plans }()
	case <-ctx.Done():
		return store.Manifest{}, ctx.Err()
	}
	process, err := d.node.startProcess(ctx, d.name, version.Name(name), 0, pinned, d.refuted(name, f))
	if err != nil {
		return store.Manifest{}, err
	}
	defer process.Close()
	m, err := process.Plan()
	m.Version, m.Created = name, time.Time{} // set by the store
	return m, err
}

// openBlocks opens newly published blocks and reports whether there were any. It ignores blocks of
// another plan, which the load with the new plan removes.
func (d *db) openBlocks(l *live) (opened bool) {
	name := l.v.Info().Name
	dir, err := d.node.o.Store.Dir(d.name, name)
	if err != nil || !dir.Manifest().SamePlan(l.manifest) {
		return false
	}
	partitions, err := dir.Complete()
	if err != nil {
		d.log.Error("the blocks of a version cannot be listed", "version", name, "error", err)
		return false
	}
	partitions = slices.DeleteFunc(partitions, func(p int) bool { return l.open[p] })
	if len(partitions) == 0 {
		return false
	}
	known := dir.Known()
	for i, r := range dir.OpenAll(partitions, known) {
		p := partitions[i]
		if r.Err == nil {
			r.Err = l.put(p, r.Block, known[p])
		}
		if r.Err != nil {
			d.unopened(dir, name, p, r.Err)
			continue
		}
		opened = true
		if d.live[name] == l {
			l.Advertise(p)
		}
	}
	return opened
}

// put makes a partition readable.
func (l *live) put(p int, r *blocks.Reader, known blocks.Known) error {
	if err := l.v.Put(p, r); err != nil {
		return errors.Join(err, r.Close())
	}
	l.open[p], l.records[p], l.bytes[p] = true, r.Properties().Records, r.Size()
	delete(l.damaged, p)
	l.known[p] = r.Known()
	l.unlisted = l.unlisted || l.known[p] != known
	return nil
}

// unopened handles a block that cannot be opened. A damaged block is set aside, so that it is loaded
// again.
func (d *db) unopened(dir *store.Dir, name string, p int, err error) {
	log := d.log.With("version", name, "partition", p)
	log.Error("a block cannot be opened", "error", err)
	if !blocks.IsDamage(err) {
		return
	}
	d.node.o.Metrics.Server.ChecksumFailure(d.name)
	if err := dir.SetAside(p); err != nil {
		log.Error("a damaged block cannot be set aside", "error", err)
	}
}

// listBlocks stores what is known of the small blocks of a version, so that the next start need not open them.
func (d *db) listBlocks(l *live) {
	if !l.unlisted {
		return
	}
	l.unlisted = false
	dir, err := d.node.o.Store.Dir(d.name, l.v.Info().Name)
	if err == nil {
		err = dir.SetKnown(l.known)
	}
	if err != nil {
		d.log.Warn("the next start has to open every block", "version", l.v.Info().Name, "error", err)
	}
}
