package transfer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"sequins/internal/content"
	"sequins/shard"
	"sequins/store"
	"sequins/version"
)

// times bound how long a Run waits for another node from which nothing new comes. ZooKeeper only tells that the node has left.
type times struct {
	silent time.Duration // if the node does not report that it loads: it may begin later, or never
	busy   time.Duration // if it loads, which may hang, or gives as many blocks as it may; at least the time of this node's own load
	poll   time.Duration // the interval at which reports and waits are looked at, and nodes that were busy or have failed are asked again
}

var defaultTimes = times{silent: 30 * time.Second, busy: 10 * time.Minute, poll: 200 * time.Millisecond}

// ErrLeft means that partitions are left that no other node delivers, and that have to be loaded from the source.
var ErrLeft = errors.New("partitions are left to be read from the source")

// A Run fills one version: it copies partitions from other nodes, and has the others loaded. Its methods must not be called concurrently.
type Run struct {
	t         *Transfer // nil: everything is loaded
	db        string
	following version.Following
	log       *slog.Logger
	times     times
	peers     map[string]*peer // by address
	refused   map[spot]bool    // what a node does not have, or has a bad block of
}

// spot is the block of a partition on another node.
type spot struct {
	addr      string
	partition int
}

// A peer is what is known of another node.
type peer struct {
	loading bool      // it reports that it loads
	blocks  int       // the most that it has reported
	since   time.Time // since when this node waits for a block of it in vain; zero: it does not
	passed  bool      // that was for too long: it is not waited for and not asked, until it reports more blocks
	resting bool      // it was busy or has failed: it is not asked for blocks until the next look
}

// NewRun returns a Run of a version that is followed. t copies blocks; if it is nil, everything is loaded.
func NewRun(t *Transfer, db string, following version.Following, log *slog.Logger) *Run {
	return &Run{t: t, db: db, following: following, log: log, times: defaultTimes, peers: make(map[string]*peer), refused: make(map[spot]bool)}
}

func (r *Run) peer(addr string) *peer {
	p := r.peers[addr]
	if p == nil {
		p = &peer{}
		r.peers[addr] = p
	}
	return p
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

// A filling is a running Fill. Its fields belong to the goroutine of Fill; the others send functions to events.
type filling struct {
	*Run
	job     Job
	content content.Content

	ctx     context.Context
	cancel  context.CancelFunc
	working sync.WaitGroup
	events  chan func()

	todo    []int // not loaded by this node, not here yet
	copying map[int]bool
	copied  int

	// The fields below are as of the last look.
	heldBy map[int][]string // nodes that have a partition
	self   string
	owners [][]string // of each partition
	order  [][]string // of the owners, see readers
	left   []int      // partitions that no other node is expected to deliver
	more   bool       // this node owns partitions that are not wanted: it was assigned others after Want

	loads bool          // Load is running, or about to
	took  time.Duration // that it took
	err   error
}

// Fill loads or copies the missing ones of the wanted partitions. It runs on the goroutine of the load, starts one for Load and a few for copies, and
// waits for all of them. If other nodes do not deliver some partitions, it returns an error that wraps ErrLeft; after another Fill fewer are left.
// Other errors are those of Load and of the store, or of ctx.
func (r *Run) Fill(ctx context.Context, j Job) error {
	missing, err := j.Dir.Missing(j.Want)
	if err != nil || len(missing) == 0 {
		return err
	}
	f := &filling{Run: r, job: j, content: j.Dir.Manifest().Content(), todo: missing, copying: make(map[int]bool), events: make(chan func()),
		loads: j.Load != nil}
	f.ctx, f.cancel = context.WithCancel(ctx)
	defer f.working.Wait()
	defer f.cancel()
	f.look()
	f.load()
	tick := time.NewTicker(r.times.poll)
	defer tick.Stop()
	for !f.isFinished() {
		f.copy()
		select {
		case e := <-f.events:
			e()
		case <-tick.C:
			f.look()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if f.err != nil {
		return f.err
	}
	if f.copied > 0 {
		r.log.Info("partitions copied from other nodes", "version", f.content.Name, "partitions", f.copied, "left", len(f.todo))
	}
	if len(f.todo) > 0 {
		return fmt.Errorf("%w: %d", ErrLeft, len(f.todo))
	}
	return nil
}

// do runs work on a goroutine, and then what it returns on that of Fill, unless Fill has ended.
func (f *filling) do(work func() (then func())) {
	f.working.Go(func() {
		then := work()
		select {
		case f.events <- then:
		case <-f.ctx.Done():
		}
	})
}

// load begins the load of the partitions that no other node is expected to deliver, also if there are none.
func (f *filling) load() {
	if !f.loads {
		return
	}
	mine, began := f.left, time.Now()
	f.left, f.todo = nil, slices.DeleteFunc(f.todo, func(p int) bool { return slices.Contains(mine, p) })
	f.do(func() func() {
		err := f.job.Load(mine)
		return func() { f.loads, f.took, f.err = false, time.Since(began), errors.Join(err, f.err) }
	})
}

// isFinished reports whether nothing is to be waited for: everything is here, or nothing is being copied and something has to be loaded, or other
// partitions are to be wanted, for which other nodes may wait.
func (f *filling) isFinished() bool {
	switch {
	case f.loads:
		return false
	case f.err != nil:
		return true
	case len(f.copying) > 0:
		return false
	}
	return len(f.left) == len(f.todo) || f.isLoadDue() || f.more
}

// isLoadDue reports whether this node has to load more than it has.
func (f *filling) isLoadDue() bool { return f.job.Load != nil && !f.loads && len(f.left) > 0 }

// copy begins the copies that can be.
func (f *filling) copy() {
	for s := f.next(); s != nil; s = f.next() {
		f.copying[s.partition] = true
		f.do(func() func() {
			err := f.t.receiving.Acquire(f.ctx, 1)
			if err == nil {
				err = f.t.fetch(f.ctx, s.addr, f.job.Dir, s.partition, f.job.Partitioner)
				f.t.receiving.Release(1)
			}
			return func() { f.fetched(*s, err) }
		})
	}
}

// next returns the block to copy next; nil if there is none.
func (f *filling) next() *spot {
	if f.isLoadDue() || f.ctx.Err() != nil || len(f.copying) >= streams {
		return nil
	}
	for _, p := range f.todo {
		if f.copying[p] {
			continue
		}
		from := slices.DeleteFunc(f.givers(p), func(addr string) bool { return f.peer(addr).resting })
		if len(from) > 0 {
			return &spot{from[rand.IntN(len(from))], p}
		}
	}
	return nil
}

// fetched processes the end of a copy. A fault is logged when it begins, and when the node is not asked any more.
func (f *filling) fetched(s spot, err error) {
	delete(f.copying, s.partition)
	p := f.peer(s.addr)
	log := func(msg string) {
		f.log.Warn(msg, "peer", s.addr, "version", f.content.Name, "partition", s.partition, "error", err)
	}
	switch {
	case err == nil:
		f.copied++
		f.todo = slices.DeleteFunc(f.todo, func(p int) bool { return p == s.partition })
		p.since = time.Time{}
		f.job.Published()
	case f.ctx.Err() != nil:
	case errors.Is(err, errDisk):
		f.err = err
	case errors.Is(err, errElsewhere):
		f.refused[s] = true
	case errors.Is(err, errRefused):
		f.refused[s] = true
		log("a block of another node is not used")
	default:
		busy := errors.Is(err, errBusy)
		if !busy && p.since.IsZero() {
			log("a copy from another node has failed, and is tried again")
		}
		p.resting = true
		f.wait(s.addr, busy || p.loading)
	}
}

// wait begins to wait for a node, or passes over it if it has been waited for for too long.
func (f *filling) wait(addr string, busy bool) {
	p, patience := f.peer(addr), f.times.silent
	member := len(f.owners) == 0 || slices.ContainsFunc(f.owners, func(of []string) bool { return slices.Contains(of, addr) })
	switch {
	case busy:
		patience = max(f.times.busy, f.took)
	case !member: // it has left, and what failed was a copy of what it may still have had
		patience = 0
	}
	if p.since.IsZero() {
		p.since = time.Now()
	}
	if time.Since(p.since) > patience && !p.passed {
		p.passed = true
		f.log.Info("a node is not waited for any longer; another one reads its partitions from the source", "version", f.content.Name, "peer", addr)
	}
}

// look finds what of the partitions other nodes have, or will deliver. It goes by the owners as they are now: nodes that went by those of different
// times would wait for each other.
func (f *filling) look() {
	if f.t != nil {
		f.followReports()
		owners, self := f.following.Owners()
		if !slices.EqualFunc(owners, f.owners, slices.Equal) {
			f.owners, f.order = owners, readers(f.db, f.content.Name, owners)
			f.more = f.job.Load != nil && ownsOthers(owners, self, f.job.Want)
		}
		f.self = self
	}
	if !f.loads && f.job.Load != nil {
		for _, p := range f.todo {
			if addr := f.reader(p); addr != f.self && len(f.givers(p)) == 0 {
				f.wait(addr, f.peer(addr).loading)
			}
		}
	}
	f.left = slices.DeleteFunc(slices.Clone(f.todo), func(p int) bool { // another node gives it, or is to be waited for until it does
		return len(f.givers(p)) > 0 || f.job.Load != nil && f.reader(p) != f.self
	})
}

// ownsOthers reports whether a node owns partitions that are not among some ascending ones.
func ownsOthers(owners [][]string, addr string, partitions []int) bool {
	for p, of := range owners {
		if _, found := slices.BinarySearch(partitions, p); !found && slices.Contains(of, addr) {
			return true
		}
	}
	return false
}

// followReports reads which nodes have which partitions. Without reports of a partition, those that advertise it have it: a node that has lost
// ZooKeeper may still give it.
func (f *filling) followReports() {
	reports, _ := f.following.Reports()
	f.heldBy = make(map[int][]string)
	for _, p := range f.peers {
		p.loading, p.resting = false, false
	}
	for addr, r := range reports {
		p := f.peer(addr)
		p.loading = r.Loading
		if len(r.Blocks) > p.blocks {
			p.blocks, p.since, p.passed = len(r.Blocks), time.Time{}, false
		}
		for p := range r.Blocks {
			f.heldBy[p] = append(f.heldBy[p], addr)
		}
	}
	for _, p := range f.todo {
		if len(f.heldBy[p]) == 0 {
			f.heldBy[p] = f.following.Peers(p)
		}
	}
}

// givers returns the nodes that have a partition and may be asked for it.
func (f *filling) givers(partition int) (addrs []string) {
	for _, addr := range f.heldBy[partition] {
		if !f.peer(addr).passed && !f.refused[spot{addr, partition}] {
			addrs = append(addrs, addr)
		}
	}
	return addrs
}

// reader returns the node that is to read a partition from the source: the first of its order that has not been passed over, or this one.
func (f *filling) reader(partition int) string {
	if partition < len(f.order) {
		for _, addr := range f.order[partition] {
			if addr == f.self || !f.peer(addr).passed && !f.refused[spot{addr, partition}] {
				return addr
			}
		}
	}
	return f.self
}
