package fill

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"sequins/cluster/transfer"
	"sequins/shard"
	"sequins/store"
	"sequins/version"
	"sequins/version/gate"
)

// Times bound how long a Run waits for other nodes. A zero field has the default that its comment names.
type Times struct {
	Silent time.Duration // for a reader that does not report that it loads: 30s
	// Most is for the next block of a node that loads or has blocks: 30m. If this node has loaded something itself, it waits for one that loads
	// three times as long as that took, or Silent if that is more.
	Most time.Duration
	Poll time.Duration // the interval at which reports are looked at: 200ms
}

// ErrLeft means that partitions are left that no other node delivers, and that have to be loaded from the source.
var ErrLeft = errors.New("partitions are left to be read from the source")

// A Run fills one version. Its methods must not be called concurrently.
type Run struct {
	o      Options
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
	o.Times = Times{cmp.Or(o.Times.Silent, 30*time.Second), cmp.Or(o.Times.Most, 30*time.Minute), cmp.Or(o.Times.Poll, 200*time.Millisecond)}
	return &Run{o: o, peers: make(map[string]*peer), failures: make(map[spot]int)}
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
	f := &filling{Run: r, job: j, content: j.Dir.Manifest().Content(), todo: missing, copying: make(map[int]bool), events: make(chan func())}
	f.ctx, f.cancel = context.WithCancel(ctx)
	if r.o.Transfer != nil {
		var owners [][]string
		owners, f.self = r.o.Following.Owners()
		f.order = readers(r.o.DB, f.content.Name, owners)
	}
	defer f.stop()
	return f.run()
}
