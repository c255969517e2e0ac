// Package upkeep cares for the blocks of all versions that can be read: which of their pages are in memory, and the search for damage (the scrub), each
// by a goroutine of its own. Damage is reported as for a request, so that the block is loaded again.
package upkeep

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"sequins/blocks"
	"sequins/internal/sleep"
	"sequins/version"
)

// Upkeep has the settings.
type Upkeep struct {
	Sets        func() []*version.Set // of all databases that are served
	ScrubPeriod time.Duration         // the interval of reading every block; 0 disables it
	Log         *slog.Logger
}

// sweepPeriod is the minimum interval at which the node asks the kernel which pages of its blocks are still in memory. In between, a lookup in a page
// that was just evicted blocks a thread in a page fault. A query takes 1 to 15 ms per gigabyte. Between queries the node rests for sweepRest times
// their duration: a concurrent request is delayed by less than 0.1 ms, and the sweep uses less than a twentieth of a processor.
const (
	sweepPeriod = time.Second
	sweepRest   = 19
)

// reportPause is how long a scrub waits while there are too many reports of damage.
const reportPause = 100 * time.Millisecond

// scrubBurst limits a single read of a scrub, in bytes.
const scrubBurst = 2 << 20

// errLeaving ends the scrub and the sweep of a block whose version is being removed.
var errLeaving = errors.New("the version is being removed")

// Start starts the goroutines, which end with ctx.
func (u Upkeep) Start(ctx context.Context, running *sync.WaitGroup) {
	running.Go(func() { u.sweep(ctx) })
	if period := u.ScrubPeriod; period > 0 {
		running.Go(func() {
			for wait := period; sleep.For(ctx, wait) == nil; {
				began := time.Now()
				u.Scrub(ctx)
				wait = max(0, period-time.Since(began))
			}
		})
	}
}

// sweep updates the residency of the pages of all blocks until ctx ends.
func (u Upkeep) sweep(ctx context.Context) {
	failing := false
	for sleep.For(ctx, sweepPeriod) == nil {
		var failed error // of a block that is not damaged
		ended := u.eachBlock(func(h *version.Handle, p int, b *blocks.Reader) error {
			err := b.Sweep(func(busy time.Duration) error {
				if h.Leaving() {
					return errLeaving
				}
				return sleep.For(ctx, sweepRest*busy)
			})
			switch {
			case err == nil || errors.Is(err, errLeaving) || ctx.Err() != nil:
			case blocks.IsDamage(err):
				h.Report(p, b, err)
			case failed == nil:
				failed = err
			}
			return ctx.Err()
		})
		if ended != nil {
			return
		}
		if failed != nil && !failing {
			u.Log.Warn("the kernel does not say what is in memory; lookups may wait for the disk", "error", failed)
		}
		failing = failed != nil
	}
}

// Scrub reads every block once, unless ctx ends. The reads take half of the scrub period, so that they are as slow as it allows.
func (u Upkeep) Scrub(ctx context.Context) {
	start := time.Now()
	var all, read int64
	_ = u.eachBlock(func(_ *version.Handle, _ int, b *blocks.Reader) error {
		all += b.Size()
		return nil
	})
	limit := rate.NewLimiter(rate.Limit(float64(max(all, scrubBurst))/(u.ScrubPeriod/2).Seconds()), scrubBurst)
	count, damaged := 0, 0
	ended := u.eachBlock(func(h *version.Handle, p int, b *blocks.Reader) error {
		err := b.Scrub(ctx, func(bytes int) error {
			if h.Leaving() {
				return errLeaving
			}
			read += int64(bytes)
			return limit.WaitN(ctx, min(bytes, scrubBurst))
		})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		count++
		if err != nil && !errors.Is(err, errLeaving) {
			damaged++
			u.Log.Error("the scrub found a damaged block", "block", b.Name(), "version", h.Name, "partition", p, "error", err)
			for !h.Report(p, b, err) && !h.Leaving() {
				if err := sleep.For(ctx, reportPause); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if ended == nil {
		u.Log.Info("scrubbed", "blocks", count, "bytes", read, "damaged", damaged, "took", time.Since(start).Round(time.Millisecond))
	}
}

// eachBlock calls f for every block that is served, and returns its first error.
func (u Upkeep) eachBlock(f func(h *version.Handle, partition int, b *blocks.Reader) error) error {
	for _, set := range u.Sets() {
		err := set.EachBlock(func(h *version.Handle, p int, b version.Block) error {
			if r, ok := b.(*blocks.Reader); ok {
				return f(h, p, r)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
