// Package sleep owns waiting for time to pass where somebody may want it to end earlier: between attempts, and
// where work in the background rests.
package sleep

import (
	"context"
	"time"
)

// For waits for d and returns nil, or, when ctx ends first, returns its error.
func For(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
