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

// lateness estimates the 95th percentile of the time until a node begins to answer, and for requests that would leave the
// zone of the client, the 99.5th: some of them are to be spared a slow node, and nearly all are to stay.
type lateness struct {
	max           time.Duration
	late, leaving atomic.Int64 // nanoseconds
}

func newLateness(limit time.Duration) *lateness {
	l := &lateness{max: max(limit, minLate)}
	l.late.Store(int64(min(firstLate, l.max)))
	l.leaving.Store(l.late.Load())
	return l
}

// estimate returns the time after which a request is late.
func (l *lateness) estimate() time.Duration { return time.Duration(l.late.Load()) }

// observe adds the time of one request. Concurrent calls may lose one.
func (l *lateness) observe(d time.Duration) {
	l.update(&l.late, d, 10)
	l.update(&l.leaving, d, 1)
}

// update increases an estimate by 20 % less share if it is exceeded, and decreases it by share otherwise, in thousandths, so
// that it settles where share times in 200 are longer.
func (l *lateness) update(estimate *atomic.Int64, d time.Duration, share int64) {
	now := estimate.Load()
	if int64(d) > now {
		now += now * (200 - share) / 1000
	} else {
		now -= now * share / 1000
	}
	estimate.Store(min(max(now, int64(minLate)), int64(l.max)))
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
