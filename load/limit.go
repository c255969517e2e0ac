package load

import (
	"context"
	"time"

	"golang.org/x/time/rate"
)

// NewBandwidth returns a limiter for Options.Bandwidth, of bytesPerSecond for
// all the loads that share it. What it lets through at once is a twentieth of
// a second's worth, between 4 KiB and 1 MiB.
func NewBandwidth(bytesPerSecond float64) *rate.Limiter {
	burst := min(max(int(min(bytesPerSecond/20, 1<<20)), 4<<10), 1<<20)
	return rate.NewLimiter(rate.Limit(bytesPerSecond), burst)
}

// pacePeriod is how long a throttled load may sleep at once.
const pacePeriod = 50 * time.Millisecond

// A pacer lets through one record per throttle on average, over all the
// goroutines of a load. A nil pacer lets everything through.
//
// The system before this one slept before each record. This gives the same
// rate with a timer for many records.
type pacer struct {
	limiter *rate.Limiter
}

func newPacer(throttle time.Duration) *pacer {
	if throttle <= 0 {
		return nil
	}
	burst := max(1, int(pacePeriod/throttle))
	l := rate.NewLimiter(rate.Every(throttle), burst)
	l.AllowN(time.Now(), burst) // it begins with nothing saved up
	return &pacer{l}
}

// step returns how many records are to be read before the next wait.
func (p *pacer) step() int64 {
	if p == nil {
		return 1 << 62
	}
	return int64(p.limiter.Burst())
}

// wait waits for n records, no more than step.
func (p *pacer) wait(ctx context.Context, n int64) error {
	if p == nil {
		return nil
	}
	return p.limiter.WaitN(ctx, int(n))
}
