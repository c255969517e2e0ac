package transfer

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Limits bound what copies of blocks take from reads.
type Limits struct {
	// Streams is how many blocks are given at a time, and how many are received; at least 1.
	Streams int
	// Bandwidth limits the bytes per second that are given, and those that are received; 0 is unlimited.
	Bandwidth float64
}

// burst is how many bytes may pass at once, whatever the limit. Blocks are read in pieces of at most this size.
const burst = 256 << 10

// A lane limits copies in one direction.
type lane struct {
	rate *rate.Limiter

	mu      sync.Mutex
	streams int
	limit   int
	changed chan struct{} // closed when a place may be free
}

func newLane() *lane {
	return &lane{rate: rate.NewLimiter(rate.Inf, burst), limit: 1, changed: make(chan struct{})}
}

func (l *lane) set(o Limits) {
	limit := rate.Inf
	if o.Bandwidth > 0 {
		limit = rate.Limit(o.Bandwidth)
	}
	l.rate.SetLimit(limit)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.limit = max(1, o.Streams)
	l.wake()
}

// wake wakes those that wait for a place. l.mu is held.
func (l *lane) wake() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// enter takes a place if one is free. Otherwise it returns a channel that is closed when one may be.
func (l *lane) enter() (ok bool, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.streams >= l.limit {
		return false, l.changed
	}
	l.streams++
	return true, nil
}

// wait takes a place, and waits for it; at most for a time, after which the error is ErrCrowded.
func (l *lane) wait(ctx context.Context, most time.Duration) error {
	late := time.NewTimer(most)
	defer late.Stop()
	for {
		ok, changed := l.enter()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-late.C:
			return ErrCrowded
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (l *lane) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.streams--
	l.wake()
}

// A pulse measures how fast the other side is: the time that a copy waits for it. It ends copies that would keep a place
// for long. Bytes that were fast earn no more than the patience, so that a stall is noticed as soon after many bytes as at the start.
type pulse struct {
	least    float64       // bytes per second
	patience time.Duration // that may be waited in addition
	left     time.Duration // how long the other side may take until the next byte
}

// newPulse returns the pulse of a copy that has a place in a lane. If all places are taken, the lane's limit may explain half of its share.
func (t *Transfer) newPulse(l *lane) pulse {
	l.mu.Lock()
	defer l.mu.Unlock()
	return pulse{least: min(t.o.LeastRate, float64(l.rate.Limit())/float64(2*l.limit)), patience: t.o.Patience, left: t.o.Patience}
}

// add counts n bytes that took a while, and reports whether the other side is fast enough.
func (p *pulse) add(n int, took time.Duration) bool {
	p.left += time.Duration(float64(n)/p.least*float64(time.Second)) - took
	fast := p.left >= 0
	p.left = min(p.left, p.patience)
	return fast
}
