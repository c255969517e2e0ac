package source

import (
	"context"

	"golang.org/x/time/rate"
)

// Wait waits until n bytes may be fetched. A nil limiter has no limit.
func Wait(ctx context.Context, l *rate.Limiter, n int64) error {
	if l == nil {
		return nil
	}
	for n > 0 { // in steps, so that concurrent callers take turns
		some := min(n, int64(max(1, l.Burst())))
		if err := l.WaitN(ctx, int(some)); err != nil {
			return err
		}
		n -= some
	}
	return nil
}
