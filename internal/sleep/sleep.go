// Package sleep waits with a context: between retries, and in background work that is throttled.
package sleep

import (
	"context"
	"time"
)

// For waits for d and returns nil, or returns the error of ctx if it ends first.
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
