package transfer

import (
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
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
	rate   *rate.Limiter
	places atomic.Pointer[places]
}

// places are those of copies, given in the order in which they were asked for. Another limit makes new ones, beside those that are taken.
type places struct {
	*semaphore.Weighted
	limit int
}

func newLane() *lane {
	l := &lane{rate: rate.NewLimiter(rate.Inf, burst)}
	l.places.Store(&places{semaphore.NewWeighted(1), 1})
	return l
}

func (l *lane) set(o Limits) {
	limit := rate.Inf
	if o.Bandwidth > 0 {
		limit = rate.Limit(o.Bandwidth)
	}
	l.rate.SetLimit(limit)
	if n := max(1, o.Streams); n != l.places.Load().limit {
		l.places.Store(&places{semaphore.NewWeighted(int64(n)), n})
	}
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
	return pulse{least: min(t.o.LeastRate, float64(l.rate.Limit())/float64(2*l.places.Load().limit)), patience: t.o.Patience, left: t.o.Patience}
}

// add counts n bytes that took a while, and reports whether the other side is fast enough.
func (p *pulse) add(n int, took time.Duration) bool {
	p.left += time.Duration(float64(n)/p.least*float64(time.Second)) - took
	fast := p.left >= 0
	p.left = min(p.left, p.patience)
	return fast
}
