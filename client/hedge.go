package client

import (
	"sync"
	"sync/atomic"
	"time"
)

// The bounds of the time after which a request is late.
const (
	firstLate = 20 * time.Millisecond // before anything was measured
	minLate   = 500 * time.Microsecond
)

// lateness estimates the 95th percentile of the time until a node begins to answer. Each longer time increases the
// estimate by 19 %, each shorter one decreases it by 1 %, so that it settles where one time in twenty is longer.
type lateness struct {
	max time.Duration
	ns  atomic.Int64
}

func newLateness(limit time.Duration) *lateness {
	l := &lateness{max: max(limit, minLate)}
	l.ns.Store(int64(min(firstLate, l.max)))
	return l
}

// estimate returns the time after which a request is late.
func (l *lateness) estimate() time.Duration { return time.Duration(l.ns.Load()) }

// observe adds the time of one request. Concurrent calls may lose one.
func (l *lateness) observe(d time.Duration) {
	now := l.ns.Load()
	if int64(d) > now {
		now += now * 19 / 100
	} else {
		now -= now / 100
	}
	l.ns.Store(min(max(now, int64(minLate)), int64(l.max)))
}

// budget limits hedged requests to a share of all calls. Up to maxSaved of them are saved for bursts.
type budget struct {
	share float64

	mu    sync.Mutex
	saved float64
}

const maxSaved = 10

// earn is called once for each call.
func (b *budget) earn() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.saved = min(b.saved+b.share, maxSaved)
}

// spend reports whether a request may be hedged, and counts it.
func (b *budget) spend() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.saved < 1 {
		return false
	}
	b.saved--
	return true
}
