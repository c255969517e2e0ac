package fill

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"sequins/gate"
	"sequins/shard"
	"sequins/store"
	"sequins/transfer"
	"sequins/version"
)

// Times bound how long a Run waits for other nodes. A zero field has the default that its comment names.
type Times struct {
	Silent time.Duration // for a reader that does not report that it loads: 30s, or less if one that loads has less
	Least  time.Duration // for the next block of a reader that loads: 15s, or three times what this node's own load took
	Most   time.Duration // for that, if this node had nothing to load: 30m
	Busy   time.Duration // for a node that has blocks and gives none of them: 10m
	Poll   time.Duration // the interval at which reports are looked at: 200ms
}

func (t Times) withDefaults() Times {
	return Times{cmp.Or(t.Silent, 30*time.Second), cmp.Or(t.Least, 15*time.Second), cmp.Or(t.Most, 30*time.Minute), cmp.Or(t.Busy, 10*time.Minute),
		cmp.Or(t.Poll, 200*time.Millisecond)}
}

// ErrLeft means that partitions are left that no other node delivers, and that have to be loaded from the source.
var ErrLeft = errors.New("partitions are left to be read from the source")

// A Run fills one version. Its methods must not be called concurrently.
type Run struct {
	o      Options
	times  Times
	peers  map[string]*peer // by address
	parser gate.Parser
	// failures are how often nodes have failed to give a block; maxFailures if they are not asked for it again.
	failures map[spot]int
}

// Options are the settings of a Run.
type Options struct {
	// Transfer copies blocks; nil means that everything is loaded.
	Transfer  *transfer.Transfer
	DB        string
	Following version.Following
	Times     Times
	Logger    *slog.Logger
}

// spot is the block of a partition on another node.
type spot struct {
	addr      string
	partition int
}

// New returns a Run.
func New(o Options) *Run {
	return &Run{o: o, times: o.Times.withDefaults(), peers: make(map[string]*peer), failures: make(map[spot]int)}
}

// A Job is a call of Fill.
type Job struct {
	Dir         *store.Dir // of the content
	Partitioner shard.Partitioner
	Want        []int // partitions, ascending
	// Load loads partitions from the source. It is called once, maybe without partitions. If it is nil, only what other nodes have now is
	// copied.
	Load func(mine []int) error
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
	defer f.stop()
	return f.run()
}

// newFilling returns the state of a Fill.
func (r *Run) newFilling(ctx context.Context, j Job, missing []int) *filling {
	f := &filling{Run: r, job: j, content: j.Dir.Manifest().Content(), todo: missing, copying: make(map[int]bool), events: make(chan func())}
	f.ctx, f.cancel = context.WithCancel(ctx)
	if r.o.Transfer != nil {
		var owners [][]string
		owners, f.self = r.o.Following.Owners()
		f.order = readers(r.o.DB, f.content.Name, owners)
	}
	return f
}
