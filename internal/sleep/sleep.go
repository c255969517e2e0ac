// Package sleep waits with a context, wakes a goroutine that waits, and computes the pauses between retries.
package sleep

import (
	"context"
	"math/rand/v2"
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

// Wake sends to a channel with a buffer of one, unless it is full: who receives from it looks at all that has changed.
func Wake(ch chan<- struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// Backoff returns the pause after the n-th consecutive failure, n ≥ 1: a random
// duration from d/2 to d, where d is first, doubled with each failure, and at most
// limit. It is random so that nodes that failed together do not retry in step.
func Backoff(n int, first, limit time.Duration) time.Duration {
	d := limit
	if n <= 20 {
		d = min(d, first<<(n-1))
	}
	return d/2 + rand.N(d/2)
}
