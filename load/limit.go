package load

import (
	"math"
	"time"

	"golang.org/x/time/rate"
)

// pacePeriod is the longest sleep of a throttled load.
const pacePeriod = 50 * time.Millisecond

// newPacer returns a limiter that admits one record per throttle on average, for all goroutines of a load together. They wait once
// for many records, at most its burst. Without a throttle it admits every record immediately.
func newPacer(throttle time.Duration) *rate.Limiter {
	if throttle <= 0 {
		return rate.NewLimiter(rate.Inf, math.MaxInt)
	}
	burst := max(1, int(pacePeriod/throttle))
	l := rate.NewLimiter(rate.Every(throttle), burst)
	l.AllowN(time.Now(), burst) // start with an empty bucket
	return l
}
