package fill

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"sequins/store"
	"sequins/transfer"
)

const (
	// maxCopies is how many copies one version waits for; package transfer limits how many run.
	maxCopies = 4
	// maxFailures is how often a copy may fail for reasons that may pass before the node is not asked for it again.
	maxFailures = 3
	// firstPoll is the first interval of questions to a node, and restTime how long a node that is busy or has failed is not asked
	// for blocks.
	firstPoll = 100 * time.Millisecond
	restTime  = time.Second
	// askTimeout limits a question, and firstAnswers how long Fill waits for the first answers before it decides what to load.
	askTimeout   = 3 * time.Second
	firstAnswers = time.Second
)

// A peer is what is known of another node.
type peer struct {
	state      transfer.State
	asked      bool      // it has answered, or has failed to
	unable     bool      // it does not give blocks
	answered   time.Time // its last answer; zero: none
	progressed time.Time // when its load was last seen to advance
	busy       time.Time // since when it has been busy, and has given nothing to any node; zero: it is not
	refusing   time.Time // since when it has been busy, and has given nothing to this node; zero: it is not
	stuck      bool      // it has been busy for too long, and is not asked for blocks any more
	due        time.Time // of the next question
	interval   time.Duration
}

// A filling is a running Fill. Its fields belong to the goroutine of Fill; the others send functions to events.
type filling struct {
	*Run
	job      Job
	manifest store.Manifest
	plan     string // of manifest
	self     string
	order    [][]string // see readers

	ctx     context.Context
	cancel  context.CancelFunc
	working sync.WaitGroup
	events  chan func()

	todo    []int // not loaded by this node, not here yet
	copying map[int]bool
	asking  map[string]bool
	resting map[string]time.Time // until when nodes are not asked for blocks
	copied  []int                // partitions

	mine   bool      // the last result of mayLoad
	judged time.Time // when that was found

	loads   bool          // Load is running
	loading time.Time     // when it began
	loaded  time.Time     // when it ended; zero: it has not
	took    time.Duration // that it took; 0 if there was none
	err     error
}

// run asks the other nodes, begins the load, and copies until nothing is left, or only what this node has to load.
func (f *filling) run() error {
	f.decide()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		if f.err != nil && !f.loads {
			return f.err
		}
		if f.finished() {
			return f.result()
		}
		timer.Reset(f.work())
		select {
		case e := <-f.events:
			e()
		case <-timer.C:
		case <-f.ctx.Done():
			return f.ctx.Err()
		}
	}
}

// stop ends all goroutines, and waits for them.
func (f *filling) stop() {
	f.cancel()
	done := make(chan struct{})
	go func() {
		f.working.Wait()
		close(done)
	}()
	for {
		select {
		case <-f.events:
		case <-done:
			return
		}
	}
}

// do runs work on a goroutine, and then what it returns on that of Fill.
func (f *filling) do(work func() (then func())) {
	f.working.Go(func() { f.events <- work() })
}

// decide waits a little for answers, and begins the load of the partitions of which this node is the reader.
func (f *filling) decide() {
	for end := time.Now().Add(firstAnswers); time.Now().Before(end) && f.ctx.Err() == nil; {
		f.ask(time.Now())
		if len(f.asking) == 0 {
			break
		}
		select {
		case e := <-f.events:
			e()
		case <-time.After(time.Until(end)):
		case <-f.ctx.Done():
		}
	}
	if f.job.Load == nil {
		f.loaded = time.Now()
		return
	}
	var mine []int
	for _, p := range f.todo {
		if f.isMine(p, time.Now()) {
			mine = append(mine, p)
		}
	}
	f.todo = slices.DeleteFunc(f.todo, func(p int) bool { return slices.Contains(mine, p) })
	f.load(mine)
}

// load begins the load, also of no partitions.
func (f *filling) load(mine []int) {
	f.loads, f.loading = true, time.Now()
	announced := f.o.Transfer.Loading(f.o.DB, f.o.Version, f.plan, mine)
	f.do(func() func() {
		err := f.job.Load(mine, announced.Progress)
		announced.End()
		return func() {
			f.loads, f.loaded = false, time.Now()
			f.err = errors.Join(err, f.err)
			if len(mine) > 0 {
				f.took = f.loaded.Sub(f.loading)
			}
		}
	})
}

// finished reports whether nothing is to be waited for: everything is here, or something has to be loaded and nothing is being copied.
func (f *filling) finished() bool {
	switch {
	case f.loads || len(f.copying) > 0:
		return false
	case len(f.todo) == 0:
		return true
	case f.job.Load == nil:
		return !f.expectsAny()
	}
	return f.mayLoad()
}

// judgePeriod is how long a result of mayLoad is used, which takes time in proportion to the number of partitions.
const judgePeriod = 100 * time.Millisecond

// mayLoad reports whether this node is now the reader of a partition that it does not load.
func (f *filling) mayLoad() bool {
	if now := time.Now(); now.Sub(f.judged) >= judgePeriod {
		f.mine, f.judged = f.isReader(now), now
	}
	return f.mine
}

func (f *filling) isReader(now time.Time) bool {
	return slices.ContainsFunc(f.todo, func(p int) bool { return f.isMine(p, now) })
}

// expectsAny reports whether another node may have one of the partitions.
func (f *filling) expectsAny() bool {
	return slices.ContainsFunc(f.todo, func(p int) bool {
		return slices.ContainsFunc(f.others(p), func(addr string) bool {
			peer := f.peers[addr]
			return peer == nil || !peer.asked || f.holds(addr, p)
		})
	})
}

func (f *filling) result() error {
	if len(f.copied) > 0 {
		f.o.Logger.Info("partitions copied from other nodes", "version", f.o.Version, "partitions", len(f.copied), "left", len(f.todo))
		f.recordInputs()
	}
	if len(f.todo) == 0 {
		return nil
	}
	now := time.Now()
	for _, p := range f.todo {
		f.passed[p] = f.isMine(p, now)
	}
	return fmt.Errorf("%w: %d", ErrLeft, len(f.todo))
}

// work asks nodes and begins copies, and returns how long nothing else is due.
func (f *filling) work() time.Duration {
	now := time.Now()
	stopping := f.job.Load != nil && !f.loads && f.mayLoad()
	for _, p := range f.todo {
		if len(f.copying) >= maxCopies || stopping {
			break
		}
		if !f.copying[p] {
			f.copy(p, now)
		}
	}
	return max(min(f.ask(now), restTime), time.Millisecond)
}

// copy begins to copy a partition if a node has it.
func (f *filling) copy(p int, now time.Time) {
	from := slices.DeleteFunc(f.others(p), func(addr string) bool { return !f.holds(addr, p) || now.Before(f.resting[addr]) })
	if len(from) == 0 {
		return
	}
	addr := from[rand.IntN(len(from))]
	f.copying[p] = true
	w := transfer.Want{DB: f.o.DB, Version: f.o.Version, Partition: p, Plan: f.plan, Partitioner: f.job.Partitioner, Dir: f.job.Dir}
	f.do(func() func() {
		err := f.o.Transfer.Fetch(f.ctx, addr, w)
		return func() { f.fetched(spot{addr, p}, err) }
	})
}

// fetched processes the end of a copy.
func (f *filling) fetched(s spot, err error) {
	delete(f.copying, s.partition)
	switch {
	case err == nil:
		f.copied = append(f.copied, s.partition)
		f.peers[s.addr].busy, f.peers[s.addr].refusing = time.Time{}, time.Time{}
		f.todo = slices.DeleteFunc(f.todo, func(p int) bool { return p == s.partition })
		f.job.Published()
		return
	case f.ctx.Err() != nil:
		return
	case errors.Is(err, transfer.ErrDisk):
		f.err = err
		return
	case errors.Is(err, transfer.ErrRefused), errors.Is(err, transfer.ErrElsewhere), errors.Is(err, transfer.ErrCrowded):
		f.refused[s] = true
		return
	case errors.Is(err, transfer.ErrBusy):
		f.peers[s.addr].noteBusy(time.Now(), f.times)
	default:
		if f.failures[s]++; f.failures[s] >= maxFailures {
			f.refused[s] = true
		}
	}
	f.resting[s.addr] = time.Now().Add(restTime/2 + rand.N(restTime))
}

// noteBusy notes that a node has said that it is busy, and whether it has been so for too long.
func (p *peer) noteBusy(now time.Time, times Times) {
	if p.busy.IsZero() {
		p.busy = now
	}
	if p.refusing.IsZero() {
		p.refusing = now
	}
	p.stuck = p.stuck || now.Sub(p.busy) > times.Busy || now.Sub(p.refusing) > times.Refusing
}

// ask asks the nodes of which that is due, and returns how long no other one is.
func (f *filling) ask(now time.Time) time.Duration {
	wait := f.times.Poll
	for _, addr := range f.asked() {
		p := f.peers[addr]
		if p == nil {
			p = &peer{interval: firstPoll}
			f.peers[addr] = p
		}
		if f.asking[addr] {
			continue
		}
		if until := p.due.Sub(now); until > 0 {
			wait = min(wait, until)
			continue
		}
		f.asking[addr] = true
		f.do(func() func() {
			ctx, cancel := context.WithTimeout(f.ctx, askTimeout)
			defer cancel()
			s, err := f.o.Transfer.Ask(ctx, addr, f.o.DB, f.o.Version, f.plan, false)
			return func() { f.answered(addr, s, err) }
		})
	}
	return wait
}

// asked returns the nodes that have, or have to get, any of the partitions.
func (f *filling) asked() []string {
	var all []string
	for _, p := range f.todo {
		for _, addr := range f.others(p) {
			if !slices.Contains(all, addr) {
				all = append(all, addr)
			}
		}
	}
	return all
}

// answered processes the answer of a node.
func (f *filling) answered(addr string, s transfer.State, err error) {
	delete(f.asking, addr)
	now, p := time.Now(), f.peers[addr]
	p.due = now.Add(p.interval)
	p.interval = min(2*p.interval, f.times.Poll)
	p.asked, p.unable = true, errors.Is(err, transfer.ErrUnable)
	if err != nil {
		return
	}
	if p.answered.IsZero() || s.Progress != p.state.Progress || len(s.Held) != len(p.state.Held) || len(s.Loading) != len(p.state.Loading) {
		p.progressed = now
	}
	if s.Given != p.state.Given {
		p.busy = time.Time{}
	}
	p.state, p.answered = s, now
}

// holds reports whether a node has said that it has a partition, not too long ago, and may be asked for it.
func (f *filling) holds(addr string, partition int) bool {
	p := f.peers[addr]
	return p != nil && !p.stuck && time.Since(p.answered) <= max(f.times.Silent, 2*f.times.Poll) && p.state.Plan == f.plan && !f.refused[spot{addr, partition}] && has(p.state.Held, partition)
}

func has(sorted []int, partition int) bool {
	_, found := slices.BinarySearch(sorted, partition)
	return found
}

// isMine reports whether this node is the reader of a partition: those before it in the order are not to be waited for.
func (f *filling) isMine(p int, now time.Time) bool {
	if slices.ContainsFunc(f.others(p), func(addr string) bool { return f.holds(addr, p) }) {
		return false
	}
	if p >= len(f.order) || f.passed[p] {
		return true
	}
	for _, addr := range f.order[p] {
		if addr == f.self {
			return true
		}
		if f.delivers(addr, p, now) {
			return false
		}
	}
	return true
}

// delivers reports whether a node that does not have a partition is to be waited for.
func (f *filling) delivers(addr string, partition int, now time.Time) bool {
	p := f.peers[addr]
	switch {
	case p == nil:
		return true // it is asked next
	case p.unable || p.stuck || f.refused[spot{addr, partition}]:
		return false
	case now.Sub(p.answered) > f.times.Silent && now.Sub(f.began) > f.times.Silent:
		return false // it does not answer
	case p.state.Plan == f.plan && has(p.state.Loading, partition):
		return now.Sub(p.progressed) < f.times.Stalled && now.Before(f.deadline())
	case p.state.Planning:
		return now.Sub(f.began) < f.times.Planning
	case p.state.Plan != "" && p.state.Plan != f.plan:
		return false
	}
	return now.Sub(f.began) < f.times.Silent
}

// deadline returns until when loads of other nodes are waited for.
func (f *filling) deadline() time.Time {
	switch {
	case f.loaded.IsZero():
		return time.Now().Add(time.Hour)
	case f.took == 0:
		return f.loaded.Add(f.times.Most)
	}
	return f.loaded.Add(max(f.times.Least, patienceFactor*f.took))
}
