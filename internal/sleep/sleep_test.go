package sleep

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		start := time.Now()
		if err := For(ctx, time.Second); err != nil || time.Since(start) != time.Second {
			t.Errorf("waited %v, %v", time.Since(start), err)
		}
		if err := For(ctx, time.Hour); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 3*time.Second {
			t.Errorf("at %v, %v", time.Since(start), err)
		}
	})
}

func TestBackoff(t *testing.T) {
	for n, want := range map[int]time.Duration{1: 100 * time.Millisecond, 3: 400 * time.Millisecond, 8: 10 * time.Second, 1000: 10 * time.Second} {
		for range 100 {
			if d := Backoff(n, 100*time.Millisecond, 10*time.Second); d < want/2 || d >= want {
				t.Fatalf("after failure %d: %v, want %v to %v", n, d, want/2, want)
			}
		}
	}
}
