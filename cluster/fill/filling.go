package fill

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"sequins/cluster/transfer"
	"sequins/internal/content"
)

const (
	// maxCopies is how many copies one version waits for; package transfer limits how many run.
	maxCopies = 4
	// restTime is how long a node that is busy or has failed is not asked for blocks, on average.
	restTime = time.Second
)

// A filling is a running Fill. Its fields belong to the goroutine of Fill; the others send functions to events.
type filling struct {
	*Run
	job     Job
	content content.Content
	self    string
	order   [][]string // see readers

	ctx     context.Context
	cancel  context.CancelFunc
	working sync.WaitGroup
	events  chan func()

	todo    []int // not loaded by this node, not here yet
	copying map[int]bool
	copied  int

	// The fields below are as of the last look.
	heldBy  map[int][]string // nodes that have a partition
	members map[string]bool  // nodes that own a partition
	left    int              // how many partitions no other node is expected to deliver

	loads  bool          // Load is running
	loaded bool          // Load has ended, and this node waits only for others
	took   time.Duration // that Load took; 0 if it had no partitions
	err    error

	waits map[string]time.Time // readers that are waited for, since when, or since they last reported a new block
}

// run begins the load, and copies until nothing is left, or something that this node has to load.
func (f *filling) run() error {
	f.look()
	f.load()
	tick := time.NewTicker(f.o.Times.Poll)
	defer tick.Stop()
	for !f.isFinished() {
		f.copy()
		select {
		case e := <-f.events:
			e()
		case <-tick.C:
			f.look()
		case <-f.ctx.Done():
			return f.ctx.Err()
		}
	}
	if f.err != nil {
		return f.err
	}
	if f.copied > 0 {
		f.o.Logger.Info("partitions copied from other nodes", "version", f.content.Name, "partitions", f.copied, "left", len(f.todo))
	}
	if len(f.todo) > 0 {
		return fmt.Errorf("%w: %d", ErrLeft, len(f.todo))
	}
	return nil
}

// stop ends all goroutines, and waits for them.
func (f *filling) stop() {
	f.cancel()
	go func() {
		f.working.Wait()
		close(f.events)
	}()
	for range f.events { // dropped
	}
}

// do runs work on a goroutine, and then what it returns on that of Fill.
func (f *filling) do(work func() (then func())) {
	f.working.Go(func() { f.events <- work() })
}

// load begins the load of the partitions that no other node is expected to deliver, also if there are none.
func (f *filling) load() {
	if f.job.Load == nil {
		return
	}
	var mine, rest []int
	for _, p := range f.todo {
		if f.isExpected(p) {
			rest = append(rest, p)
		} else {
			mine = append(mine, p)
		}
	}
	f.todo, f.left, f.loads = rest, 0, true
	began := time.Now()
	f.do(func() func() {
		err := f.job.Load(mine)
		return func() {
			f.loads, f.loaded, f.err = false, true, errors.Join(err, f.err)
			if len(mine) > 0 {
				f.took = time.Since(began)
			}
		}
	})
}

// isFinished reports whether nothing is to be waited for: everything is here, or something has to be loaded and nothing is being copied.
func (f *filling) isFinished() bool {
	switch {
	case f.loads:
		return false
	case f.err != nil:
		return true
	case len(f.copying) > 0:
		return false
	}
	return f.left == len(f.todo) || f.isLoadDue()
}

// isLoadDue reports whether this node has to load more than it has.
func (f *filling) isLoadDue() bool { return f.loaded && f.left > 0 }

// copy begins copies of partitions that other nodes have.
func (f *filling) copy() {
	if f.isLoadDue() {
		return
	}
	now := time.Now()
	for _, p := range f.todo {
		if len(f.copying) >= maxCopies {
			return
		}
		if f.copying[p] {
			continue
		}
		from := slices.DeleteFunc(f.givers(p), func(addr string) bool { return now.Before(f.peer(addr).resting) })
		if len(from) > 0 {
			s := spot{from[rand.IntN(len(from))], p}
			f.copying[p] = true
			f.do(func() func() {
				err := f.o.Transfer.Fetch(f.ctx, s.addr, transfer.Want{Dir: f.job.Dir, Partition: p, Partitioner: f.job.Partitioner})
				return func() { f.fetched(s, err) }
			})
		}
	}
}

// fetched processes the end of a copy.
func (f *filling) fetched(s spot, err error) {
	delete(f.copying, s.partition)
	switch {
	case err == nil:
		f.copied++
		f.todo = slices.DeleteFunc(f.todo, func(p int) bool { return p == s.partition })
		f.peer(s.addr).failing = time.Time{}
		f.job.Published()
	case f.ctx.Err() != nil:
	case errors.Is(err, transfer.ErrDisk):
		f.err = err
	case errors.Is(err, transfer.ErrRefused), errors.Is(err, transfer.ErrElsewhere), errors.Is(err, transfer.ErrCrowded):
		f.failures[s] = maxFailures
	default:
		if !errors.Is(err, transfer.ErrBusy) {
			f.failures[s]++
		}
		p, now := f.peer(s.addr), time.Now()
		p.resting = now.Add(restTime/2 + rand.N(restTime))
		if p.failing.IsZero() {
			p.failing = now
		}
		p.stuck = now.Sub(p.failing) > f.o.Times.Most
	}
}
