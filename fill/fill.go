package fill

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"sequins/shard"
	"sequins/store"
	"sequins/transfer"
	"sequins/version"
)

// Times bound how long a Run waits for other nodes. A zero field has the default that its comment names.
type Times struct {
	Silent   time.Duration // for a reader that has not begun, or that does not answer: 5s
	Planning time.Duration // for a reader that plans: 1m
	Stalled  time.Duration // for a load that does not advance: 30s
	Least    time.Duration // for a load that advances, after this node's own has ended: 15s, or three times what that took
	Most     time.Duration // for a load that advances, if this node has none of its own: 30m
	Busy     time.Duration // for a node that is busy and gives nothing to any node: 3m
	Refusing time.Duration // for a node that is busy and gives nothing to this node: 10m
	Poll     time.Duration // the longest interval of questions to one node: 1s
}

func (t Times) withDefaults() Times {
	for _, f := range []struct {
		d *time.Duration
		v time.Duration
	}{{&t.Silent, 5 * time.Second}, {&t.Planning, time.Minute}, {&t.Stalled, 30 * time.Second}, {&t.Least, 15 * time.Second},
		{&t.Most, 30 * time.Minute}, {&t.Busy, 3 * time.Minute}, {&t.Refusing, 10 * time.Minute}, {&t.Poll, time.Second}} {
		if *f.d <= 0 {
			*f.d = f.v
		}
	}
	return t
}

// ErrLeft means that partitions are left that no other node delivers, and that have to be loaded from the source.
var ErrLeft = errors.New("partitions are left to be read from the source")

// patienceFactor is how many times longer than this node's own load that of another one may take.
const patienceFactor = 3

// A Run fills one version. Its methods must not be called concurrently.
type Run struct {
	o     Options
	times Times
	began time.Time // of the first Fill
	peers map[string]*peer
	// refused are the blocks that nodes do not deliver, and failures how often they have failed to.
	refused  map[spot]bool
	failures map[spot]int
	// passed are partitions that have passed to this node, because their readers do not deliver them.
	passed map[int]bool
}

// Options are the settings of a Run.
type Options struct {
	// Transfer copies blocks; nil means that everything is loaded.
	Transfer *transfer.Transfer
	// DB and Version are the names in the source.
	DB, Version string
	Following   version.Following
	Times       Times
	Logger      *slog.Logger
}

// spot is the block of a partition on another node.
type spot struct {
	addr      string
	partition int
}

// New returns a Run.
func New(o Options) *Run {
	return &Run{o: o, times: o.Times.withDefaults(), peers: make(map[string]*peer), refused: make(map[spot]bool), failures: make(map[spot]int), passed: make(map[int]bool)}
}

// A Job is a call of Fill.
type Job struct {
	Dir         *store.Dir // of the version
	Partitioner shard.Partitioner
	Want        []int // partitions, ascending
	// Load loads partitions from the source, and reports how far it is, in any unit. It is called once, maybe without partitions. If it is
	// nil, only what other nodes have now is copied.
	Load func(mine []int, progress func(done int64)) error
	// Published is called after a copied partition has been published.
	Published func()
}

// Fill loads or copies the missing ones of the wanted partitions. If other nodes do not deliver some of them, it returns an error that wraps
// ErrLeft; after another Fill fewer are left. Other errors are those of Load and of the store, or of ctx.
func (r *Run) Fill(ctx context.Context, j Job) error {
	missing, err := j.Dir.Missing(j.Want)
	if err != nil || len(missing) == 0 {
		return err
	}
	f := r.newFilling(ctx, j, missing)
	if !f.hasPeers() {
		return f.alone(missing)
	}
	defer f.stop()
	return f.run()
}

// newFilling returns the state of a Fill.
func (r *Run) newFilling(ctx context.Context, j Job, missing []int) *filling {
	now := time.Now()
	if r.began.IsZero() {
		r.began = now
	}
	for _, p := range r.peers {
		p.asked, p.due = false, now
	}
	m := j.Dir.Manifest()
	f := &filling{Run: r, job: j, manifest: m, plan: m.PlanHash(), todo: missing, copying: make(map[int]bool), asking: make(map[string]bool),
		events: make(chan func()), resting: make(map[string]time.Time)}
	f.ctx, f.cancel = context.WithCancel(ctx)
	owners, self := r.o.Following.Owners()
	f.self, f.order = self, readers(r.o.DB, r.o.Version, owners)
	return f
}

// hasPeers reports whether any other node has or gets one of the partitions.
func (f *filling) hasPeers() bool {
	return f.o.Transfer != nil && slices.ContainsFunc(f.todo, func(p int) bool { return len(f.others(p)) > 0 })
}

// alone loads partitions that only this node holds.
func (f *filling) alone(missing []int) error {
	defer f.cancel()
	if f.job.Load == nil {
		return ErrLeft
	}
	return f.job.Load(missing, func(int64) {})
}

// others returns the other nodes that have, or have to get, a partition, in the order of the readers.
func (f *filling) others(p int) []string {
	var all []string
	if p < len(f.order) {
		all = slices.Clone(f.order[p])
	}
	for _, addr := range f.o.Following.Peers(p) {
		if !slices.Contains(all, addr) {
			all = append(all, addr)
		}
	}
	return slices.DeleteFunc(all, func(addr string) bool { return addr == f.self })
}
