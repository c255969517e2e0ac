package hdfs

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"sequins/test/expect"
)

func TestAttempts(t *testing.T) {
	broken := errors.New("broken")
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		a := attempts{limit: time.Minute}
		n := 0
		var err error
		for err == nil {
			time.Sleep(time.Second)
			n++
			err = a.fail(t.Context(), broken)
		}
		wantError(t, err, broken, fmt.Sprintf("and %d attempts: broken", n))
		took(t, start, time.Minute-maxPause, time.Minute+2*time.Second)
		if n < 10 || n > 25 {
			t.Errorf("%d attempts", n)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		a := attempts{limit: time.Minute}
		for range 100 { // each time some of it
			time.Sleep(time.Hour) // before the first failure nothing counts
			expect.NoError(t, a.fail(t.Context(), broken))
			a.succeed()
		}
	})
}

func TestNoMoreAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		a := attempts{limit: time.Minute}
		wantError(t, a.fail(t.Context(), fmt.Errorf("x: %w", final{errors.New("for good")})), nil, "x: for good")
		ctx, cancel := context.WithCancel(t.Context())
		a.failed = 100 // the next pause is a long one
		time.AfterFunc(time.Second, cancel)
		wantError(t, a.fail(ctx, errors.New("broken")), context.Canceled)
		took(t, start, time.Second, time.Second)
		wantError(t, a.fail(ctx, errors.New("broken")), context.Canceled)
		took(t, start, time.Second, time.Second)
	})
	synctest.Test(t, func(t *testing.T) {
		a := attempts{}
		wantError(t, a.fail(t.Context(), errors.New("broken")), nil, "gave up after 0s and one attempt: broken")
	})
}
