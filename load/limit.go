package load

import (
	"context"
	"time"

	"golang.org/x/time/rate"
)

// pacePeriod is the longest sleep of a throttled load.
const pacePeriod = 50 * time.Millisecond

// A pacer admits one record per throttle on average, for all goroutines of a load together. It waits
// once for many records. A nil pacer admits every record immediately.
type pacer struct {
	limiter *rate.Limiter
}

func newPacer(throttle time.Duration) *pacer {
	if throttle <= 0 {
		return nil
	}
	burst := max(1, int(pacePeriod/throttle))
	l := rate.NewLimiter(rate.Every(throttle), burst)
	l.AllowN(time.Now(), burst) // start with an empty bucket
	return &pacer{l}
}

// step returns how many records to read before the next wait.
func (p *pacer) step() int64 {
	if p == nil {
		return 1 << 62
	}
	return int64(p.limiter.Burst())
}

// wait waits until n records, at most step, are admitted.
func (p *pacer) wait(ctx context.Context, n int64) error {
	if p == nil {
		return nil
	}
	return p.limiter.WaitN(ctx, int(n))
}
