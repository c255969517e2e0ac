package hdfs

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

func TestAttempts(t *testing.T) {
	broken := errors.New("broken")
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		a := attempts{limit: time.Minute}
		n := 0
		var err error
		for err == nil {
			left := a.begin()
			if left != time.Minute-time.Since(start) {
				t.Errorf("after %v, %v are left", time.Since(start), left)
			}
			time.Sleep(min(left, time.Second))
			n++
			err = a.fail(t.Context(), broken)
		}
		wantError(t, err, broken, fmt.Sprintf("and %d attempts: broken", n))
		took(t, start, time.Minute-maxPause, time.Minute)
		if n < 10 || n > 25 {
			t.Errorf("%d attempts", n)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		a := attempts{limit: time.Minute}
		for range 100 { // each time some of it
			a.begin()
			time.Sleep(50 * time.Second)
			a.succeed()
			time.Sleep(time.Hour) // time between attempts does not count
			if err := a.fail(t.Context(), broken); err != nil {
				t.Fatal(err)
			}
			a.succeed()
		}
	})
	synctest.Test(t, func(t *testing.T) {
		a := attempts{limit: time.Minute}
		a.begin()
		if err := a.fail(t.Context(), broken); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		wantError(t, a.fail(t.Context(), fmt.Errorf("then: %w", errLimit)), broken, "gave up after 1m0", "2 attempts: broken")
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
		a := attempts{limit: time.Second}
		time.Sleep(time.Second)
		a.begin()
		time.Sleep(time.Second)
		wantError(t, a.fail(t.Context(), errors.New("broken")), nil, "gave up after 1s and one attempt: broken")
	})
}
