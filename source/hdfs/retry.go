package hdfs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sequins/internal/sleep"
)

const (
	firstPause = 100 * time.Millisecond
	maxPause   = 5 * time.Second
)

// final is a permanent error: a retry would not help.
type final struct{ error }

func (f final) Unwrap() error { return f.error }

// attempts counts the failures of one operation, which is given up when the limit has passed since the first one.
type attempts struct {
	limit  time.Duration
	since  time.Time // of the first failure
	failed int
	last   error
}

// succeed resets the attempts for the next operation.
func (a *attempts) succeed() { *a = attempts{limit: a.limit} }

// fail waits until the next attempt. If there is none, it returns the final
// error.
func (a *attempts) fail(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return a.ended(ctx.Err())
	}
	if _, ok := errors.AsType[final](err); ok {
		return err
	}
	if a.failed == 0 {
		a.since = time.Now()
	}
	a.failed++
	a.last = err
	wait := sleep.Backoff(a.failed, firstPause, maxPause)
	if passed := time.Since(a.since); passed+wait >= a.limit {
		return fmt.Errorf("gave up after %v and %s: %w", passed.Round(time.Millisecond), times(a.failed), err)
	}
	if err := sleep.For(ctx, wait); err != nil {
		return a.ended(err)
	}
	return nil
}

// ended returns the error of attempts that the caller has ended, with what the last one has failed of.
func (a *attempts) ended(err error) error {
	if a.last == nil {
		return err
	}
	return fmt.Errorf("%w, after %s: %w", err, times(a.failed), a.last)
}

func times(n int) string {
	if n == 1 {
		return "one attempt"
	}
	return fmt.Sprintf("%d attempts", n)
}
