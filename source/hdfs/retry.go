package hdfs

import (
	"context"
	"errors"
	"fmt"
	"os"
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

// attempts counts the attempts of one operation, which end limit after the first
// one began.
type attempts struct {
	limit  time.Duration
	since  time.Time // when the first one began; zero before
	failed int
	last   error // error of the last attempt that was not cut off by the limit
}

// errLimit is wrapped by errors of attempts that were cut off by the time limit.
var errLimit = fmt.Errorf("time limit reached: %w", os.ErrDeadlineExceeded)

// begin starts an attempt and returns how long it may take.
func (a *attempts) begin() time.Duration {
	if a.since.IsZero() {
		a.since = time.Now()
	}
	return max(0, a.limit-time.Since(a.since))
}

// succeed resets the attempts for the next operation.
func (a *attempts) succeed() { *a = attempts{limit: a.limit} }

// fail waits until the next attempt. If there is none, it returns the final
// error.
func (a *attempts) fail(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return a.ended(ctx.Err())
	}
	if f := (final{}); errors.As(err, &f) {
		return err
	}
	a.failed++
	if a.last == nil || !errors.Is(err, errLimit) {
		a.last = err
	}
	wait := sleep.Backoff(a.failed, firstPause, maxPause)
	if a.begin() <= wait {
		err = a.last
		return fmt.Errorf("gave up after %v and %s: %w", time.Since(a.since).Round(time.Millisecond), times(a.failed), err)
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
