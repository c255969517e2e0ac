package parallel_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"sequins/internal/parallel"
	"sequins/test/expect"
)

// Every piece of work is done once; the first error ends the others, and is returned.
func TestRun(t *testing.T) {
	for _, workers := range []int{1, 3, 20} {
		var done [10]atomic.Int64
		expect.NoError(t, parallel.Run(t.Context(), workers, len(done), func(_ context.Context, i int) error {
			done[i].Add(1)
			return nil
		}))
		for i := range done {
			if n := done[i].Load(); n != 1 {
				t.Errorf("%d workers do %d %d times", workers, i, n)
			}
		}
	}
	failure := errors.New("failure")
	expect.Error(t, "Run", parallel.Run(t.Context(), 1, 10, func(_ context.Context, i int) error {
		if i > 2 {
			t.Errorf("%d is done after an error", i)
		}
		if i == 2 {
			return failure
		}
		return nil
	}), failure)
}
