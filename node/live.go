package node

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"time"

	"sequins/blocks"
	"sequins/internal/content"
	"sequins/shard"
	"sequins/store"
	"sequins/version"
	"sequins/version/gate"
)

// A keeper keeps what is here of a database: the versions in its set, and their blocks.
type keeper struct {
	db        *db
	live      map[content.Input]*live // of each version in the set
	lost      string                  // the partitions that logLost has logged as lost
	seenWhole bool                    // see view.whole
}

// live is a version in the set and its state in the node.
type live struct {
	v *version.Version
	version.Following
	manifest store.Manifest  // of its content
	open     []bool          // by partition: its local block is open
	figures  []*gate.Figures // of the open blocks, by partition
	bytes    []int64         // their sizes
	list     []store.Listed  // what is known of blocks, by partition
	unlisted bool            // list is not what the store lists

	// damaged are the partitions whose block is damaged, and read until another one is loaded: whether they
	// have been withdrawn. returning is the timer to advertise some of them again.
	damaged   map[int]bool
	returning timer

	retirement timer // set while it is retired
	stall      timer // set while it is complete here and waits for other nodes

	judged judged // by the gate

	released map[int]time.Time // surplus partitions and the time of their release, see releaseSurplus
	release  timer             // for the first of them
}

func (k *keeper) newLive(m store.Manifest, f version.Following) (*live, error) {
	partitioner, err := shard.ParsePartitioner(m.Partitioner)
	if err != nil {
		return nil, err
	}
	l := &live{
		v: version.New(version.Info{
			DB: k.db.name, Content: m.Content(), Partitions: m.Partitions, Partitioner: partitioner,
			LastModified: m.LastModified, Following: f,
		}),
		Following: f,
		manifest:  m,
		open:      make([]bool, m.Partitions),
		figures:   make([]*gate.Figures, m.Partitions),
		bytes:     make([]int64, m.Partitions),
		damaged:   make(map[int]bool),
		list:      make([]store.Listed, m.Partitions),
		released:  make(map[int]time.Time),
	}
	l.v.Withhold(true) // until it is judged
	return l, nil
}

// content returns what the version's blocks are made from, and in its input.
func (l *live) content() content.Content { return l.v.Info().Content }
func (l *live) in() content.Input        { return l.v.Info().Input }

// known returns the measures with the figures of all open blocks.
func (l *live) known() *gate.Measures {
	m := gate.Measures{}
	if l.judged.measures != nil {
		m = *l.judged.measures
	}
	m.Figures = l.figures
	return &m
}

// size returns the records and bytes of the open blocks.
func (l *live) size() (records, bytes int64) {
	for p, f := range l.figures {
		if f != nil {
			records += f.Records
		}
		bytes += l.bytes[p]
	}
	return records, bytes
}

// see takes what there is of a version, and the verdict on it, into the facts.
func (k *keeper) see(l *live) {
	held, refuted := l.v.Held(), k.db.loads.isRefuted(l)
	verdict := k.db.judge.judge(l, held)
	complete := !slices.ContainsFunc(l.Owned(len(held)), func(p int) bool {
		return p < 0 || p >= len(held) || !held[p]
	})
	coverage := version.Empty
	switch {
	case !refuted && k.replicated(l.Following, held):
		coverage = version.Replicated
	case !refuted && version.IsWhole(l.Following, held):
		coverage = version.Whole
	case version.IsReadable(l.Following, held):
		coverage = version.Partial
	}
	in := l.in()
	k.db.facts.See(in, coverage, complete && !refuted, verdicts[verdict.State])
	switch waits := complete && (coverage < version.Replicated || verdict.State == gate.Pending); {
	case !waits:
		l.stall.stop()
	case l.stall.due.IsZero():
		l.stall.set(&k.db.bg, time.Now().Add(stallTimeout), func() {
			if k.db.facts.Stall(in) { // older versions may be needed that have not been listed
				k.db.lister.startListing(true)
			}
			k.look(in)
		})
	}
}

// stallTimeout is how long a version that is complete here waits for other nodes before an older one is loaded, too, if nothing is served.
const stallTimeout = time.Minute

var verdicts = map[gate.State]version.Verdict{gate.Pending: version.Unjudged, gate.Passed: version.Passed, gate.Held: version.Held}

// replicated reports whether the cluster holds enough of a version to switch to it.
func (k *keeper) replicated(f version.Following, held []bool) bool {
	return len(f.Missing(held, k.db.node.o.MinReplication)) == 0
}

// followTimeout limits the first lookups of the replicas and manifests of all versions that are opened together. Later updates arrive asynchronously.
const followTimeout = 10 * time.Second

// open adds a version to the set if it can be read without a load: because there are local blocks, or because other nodes hold it.
func (k *keeper) open(in content.Input) {
	ctx, cancel := context.WithDeadline(k.db.bg.ctx, k.db.followBy)
	defer cancel()
	f := k.db.node.o.Cluster.Follow(ctx, k.db.name, in)
	k.db.records[in].following = f
	l, err := k.openLive(ctx, in, f)
	if err != nil {
		k.db.log.Warn("version cannot be opened; it will be loaded again", "version", in.Name, "error", err)
	}
	k.db.facts.Opened(in, l != nil)
	if l == nil {
		return
	}
	k.insert(l)
	k.listBlocks(l)
	if created := l.manifest.Created; !created.IsZero() {
		k.db.records[in].created = created
	}
	k.see(l)
	v, _ := k.db.facts.Entry(in)
	k.db.log.Info("version opened", "version", in.Name, "partitions", len(l.open), "complete", v.Complete)
}

// insert adds a version to the set, replacing one of the same input.
func (k *keeper) insert(l *live) {
	if old := k.db.set.Prepare(l.v); old != nil {
		l.Withdraw()
		k.closeLater(old, func() {})
	}
	l.v.SetDivision()
	k.live[l.in()] = l
	if k.db.node.admitted.Load() {
		l.advertiseOpen()
	}
}

// Advertise advertises a partition if the gate lets the version pass.
func (l *live) Advertise(partition int) {
	if l.judged.verdict.MayServe() {
		l.Following.Advertise(partition)
	}
}

// advertiseOpen advertises the open partitions of a version.
func (l *live) advertiseOpen() {
	for p, open := range l.open {
		if open {
			l.Advertise(p)
		}
	}
}

// openLive returns a version that can be read without a load, nil if there is none: it has local blocks, or other nodes hold every partition or, if the
// manifest is in the store, at least one.
func (k *keeper) openLive(ctx context.Context, in content.Input, f version.Following) (*live, error) {
	var m store.Manifest
	dir, err := k.db.node.o.Store.Dir(k.db.name, in)
	stored := err == nil
	if stored {
		m = dir.Manifest()
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	} else if found := k.db.loads.manifestElsewhere(ctx, f, in); found != nil {
		m = *found
	} else {
		return nil, nil
	}
	l, err := k.newLive(m, f)
	if err != nil || stored && k.openBlocks(l) {
		return l, err
	}
	l.v.SetDivision()
	held := l.v.Held()
	if k.replicated(f, held) || stored && version.IsReadable(f, held) {
		return l, nil
	}
	return nil, nil
}

// openBlocks opens newly published blocks and reports whether there were any. It ignores blocks of
// another division, which the load by the new division removes.
func (k *keeper) openBlocks(l *live) (opened bool) {
	name := l.in().Name
	dir, err := k.db.node.o.Store.Dir(k.db.name, l.in())
	if err != nil || dir.Manifest().Content() != l.content() {
		return false
	}
	partitions, err := dir.Complete()
	if err != nil {
		k.db.log.Error("the blocks of a version cannot be listed", "version", name, "error", err)
		return false
	}
	partitions = slices.DeleteFunc(partitions, func(p int) bool { return l.open[p] })
	if len(partitions) == 0 {
		return false
	}
	list := dir.List()
	for i, r := range dir.OpenAll(partitions, list) {
		p := partitions[i]
		if r.Err == nil {
			r.Err = l.put(p, r.Block, list[p])
		}
		if r.Err != nil {
			log := k.db.log.With("version", name, "partition", p)
			log.Error("a block cannot be opened", "error", r.Err)
			if !blocks.IsDamage(r.Err) {
				continue
			}
			k.db.node.o.Metrics.Server.ChecksumFailure(k.db.name)
			if err := dir.SetAside(p); err != nil { // so that it is loaded again
				log.Error("a damaged block cannot be set aside", "error", err)
			}
			continue
		}
		opened = true
		if k.live[l.in()] == l {
			l.Advertise(p)
		}
	}
	return opened
}

// put makes a partition readable. was is what was listed of its block.
func (l *live) put(p int, r *blocks.Reader, was store.Listed) error {
	if err := l.v.Put(p, r); err != nil {
		return errors.Join(err, r.Close())
	}
	now := store.Describe(r, was)
	l.open[p], l.bytes[p] = true, r.Size()
	l.figures[p] = &gate.Figures{Records: r.Properties().Records, Bytes: now.RawBytes, Largest: now.MaxValue}
	delete(l.damaged, p)
	l.list[p] = now
	l.unlisted = l.unlisted || now != was
	return nil
}

// listBlocks stores what is known of the blocks of a version, so that the next start need not open the small ones, nor the next load make them again.
func (k *keeper) listBlocks(l *live) {
	if !l.unlisted {
		return
	}
	l.unlisted = false
	dir, err := k.db.node.o.Store.Dir(k.db.name, l.in())
	if err == nil {
		err = dir.SetList(l.list)
	}
	if err != nil {
		k.db.log.Warn("the next start has to open every block", "version", l.in().Name, "error", err)
	}
}

// look takes what there is of a version into the facts, and decides.
func (k *keeper) look(in content.Input) {
	if l := k.live[in]; l != nil {
		k.see(l)
		k.db.decide()
	}
}

// lookAtAll reports the state of all versions into the facts, the active one first, and decides.
func (k *keeper) lookAtAll() {
	k.look(k.db.facts.Current)
	for in := range k.live {
		if in != k.db.facts.Current {
			k.look(in)
		}
	}
}

// isWhole reports whether every partition of the current version is on this node or on a known one.
func (k *keeper) isWhole() bool {
	l := k.live[k.db.facts.Current]
	return l != nil && len(l.Missing(l.v.Held(), 1)) == 0
}

// keepManifest stores the manifest of a content that only other nodes hold, so that it can be served after a restart, even without the source.
func (k *keeper) keepManifest(l *live) {
	_, err := k.db.node.o.Store.Dir(k.db.name, l.in())
	if errors.Is(err, fs.ErrNotExist) {
		m := l.manifest
		m.Created = time.Now()
		_, err = k.db.node.o.Store.Create(k.db.name, m)
	}
	if err != nil {
		k.db.log.Error("the manifest of a version cannot be stored; a restart needs the source or another node for it", "version", l.in().Name, "error", err)
	}
}
