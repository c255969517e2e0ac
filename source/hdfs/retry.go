package hdfs

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"sequins/internal/sleep"
)

const (
	firstPause = 100 * time.Millisecond
	maxPause   = 5 * time.Second
)

// A final error is one that trying again would not change.
type final struct{ error }

func (f final) Unwrap() error { return f.error }

// attempts are those at one thing, and end a limit after the first began.
type attempts struct {
	limit  time.Duration
	since  time.Time // when the first began; zero before
	failed int
	last   error // of those that failed, and were not cut off
}

// errLimit is the class of errors of attempts that were cut off because there
// was no more time for them.
var errLimit = fmt.Errorf("there was no end to it: %w", os.ErrDeadlineExceeded)

// begin is called as an attempt begins, and returns how long it may take.
func (a *attempts) begin() time.Duration {
	if a.since.IsZero() {
		a.since = time.Now()
	}
	return max(0, a.limit-time.Since(a.since))
}

// succeed makes what comes next a new thing.
func (a *attempts) succeed() { *a = attempts{limit: a.limit} }

// fail waits until it is time for another attempt. If there is to be none, it
// returns the error to end with.
func (a *attempts) fail(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if f := (final{}); errors.As(err, &f) {
		return err
	}
	a.failed++
	if a.last == nil || !errors.Is(err, errLimit) {
		a.last = err
	}
	wait := pause(a.failed)
	if a.begin() <= wait {
		err = a.last
		return fmt.Errorf("gave up after %v and %s: %w", time.Since(a.since).Round(time.Millisecond), times(a.failed), err)
	}
	return sleep.For(ctx, wait)
}

func times(n int) string {
	if n == 1 {
		return "one attempt"
	}
	return fmt.Sprintf("%d attempts", n)
}

// pause is how long to wait after the n-th failure in a row. It is not twice
// the same, so that nodes which failed together do not come back together.
func pause(n int) time.Duration {
	d := maxPause
	if n < 10 {
		d = min(d, firstPause<<(n-1))
	}
	return d/2 + rand.N(d/2)
}
