// Package upkeep owns the care of blocks in the background: the usage of the disk, which pages of blocks are in memory,
// the blocks that the start has not opened, and the search for damage (the scrub).
//
// Run starts a goroutine for each of them. They go through the blocks of all versions that can be read, and report
// damage as a request does, so that the block is loaded again.
package upkeep

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"sequins/blocks"
	"sequins/internal/sleep"
	"sequins/version"
)

// Keeper takes care of the blocks of a node.
type Keeper struct {
	// Sets returns the versions of each database. It is called again for each round.
	Sets func() iter.Seq[*version.Set]
	// MeasureDisk measures the usage of the disk.
	MeasureDisk func()
	// ScrubPeriod is the interval of reading every block, to find damage before a request does; 0
	// disables it. The reads take half of the period, so that they are as slow as it allows.
	ScrubPeriod time.Duration
	Logger      *slog.Logger
}

// Run starts the goroutines, which end with ctx.
func (k Keeper) Run(ctx context.Context, wg *sync.WaitGroup) {
	wg.Go(func() {
		for sleep.For(ctx, diskPeriod) == nil {
			k.MeasureDisk()
		}
	})
	wg.Go(func() { k.sweep(ctx) })
	wg.Go(func() { k.scrub(ctx) })
	wg.Go(func() { k.openRest(ctx) })
}

// diskPeriod is the interval at which the usage of the disk is measured.
const diskPeriod = time.Second

// sweepPeriod is the minimum interval at which the node asks the kernel which pages of its blocks are still in memory. In between, a lookup in a page
// that was just evicted blocks a thread in a page fault. A query takes 1 to 15 ms per gigabyte. Between queries the node rests for sweepRest times
// their duration: a concurrent request is delayed by less than 0.1 ms, and the sweep uses less than a twentieth of a processor.
const (
	sweepPeriod = time.Second
	sweepRest   = 19
)

// restDelay is the time between the start and openRest, which the first requests and the listing of the source have for themselves.
const restDelay = time.Second

// maxRestDelay limits the pause before openRest tries what is left again.
const maxRestDelay = time.Minute

// reportPause is how long a scrub waits while there are too many reports of damage.
const reportPause = 100 * time.Millisecond

// scrubBurst limits a single read of a scrub, in bytes.
const scrubBurst = 2 << 20

// sweep updates the residency of the pages of all blocks until ctx ends.
func (k Keeper) sweep(ctx context.Context) {
	failing := false
	for sleep.For(ctx, sweepPeriod) == nil {
		err := k.sweepOnce(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil && !failing {
			k.Logger.Warn("the kernel does not say what is in memory; lookups may wait for the disk", "error", err)
		}
		failing = err != nil
	}
}

// sweepOnce sweeps all blocks. Damage is reported as for a request; other errors of blocks are returned at the end.
func (k Keeper) sweepOnce(ctx context.Context) error {
	var first error
	err := k.eachBlock(func(h *version.Handle, p int, b *blocks.Reader) error {
		err := b.Sweep(func(busy time.Duration) error {
			if h.Leaving() {
				return errLeaving
			}
			return sleep.For(ctx, sweepRest*busy)
		})
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil || errors.Is(err, errLeaving):
		case blocks.IsDamage(err):
			h.Report(p, b, err)
		case first == nil:
			first = err
		}
		return nil
	})
	return errors.Join(err, first)
}

// openRest opens the blocks that the start has left unopened, one after the other, so that damage of those that are
// rarely used is found soon. Damage is reported as for a request. It goes on until each block is open or is reported.
func (k Keeper) openRest(ctx context.Context) {
	for wait := restDelay; sleep.For(ctx, wait) == nil; wait = min(2*wait, maxRestDelay) {
		left := false
		_ = k.eachBlock(func(h *version.Handle, p int, b *blocks.Reader) error {
			if err := b.EnsureOpen(); err != nil {
				left = !h.Report(p, b, err) || !blocks.IsDamage(err) || left
			}
			return ctx.Err()
		})
		if !left {
			return
		}
	}
}

// scrub reads every block once per scrub period, until ctx ends. Damage is reported as for a request, so that the block is loaded again.
func (k Keeper) scrub(ctx context.Context) {
	if k.ScrubPeriod <= 0 {
		return
	}
	tick := time.NewTicker(k.ScrubPeriod)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			k.ScrubOnce(ctx)
		}
	}
}

// errLeaving ends the scrub and the sweep of a block whose version is being removed.
var errLeaving = errors.New("the version is being removed")

// ScrubOnce reads every block once.
func (k Keeper) ScrubOnce(ctx context.Context) {
	start := time.Now()
	limit, err := k.scrubLimit()
	if err != nil {
		return // the node is shutting down
	}
	var read int64
	count, damaged := 0, 0
	err = k.eachBlock(func(h *version.Handle, p int, b *blocks.Reader) error {
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
			k.Logger.Error("the scrub found a damaged block", "block", b.Name(), "version", h.Version(), "partition", p, "error", err)
			for !h.Report(p, b, err) && !h.Leaving() {
				if err := sleep.For(ctx, reportPause); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return // the node is shutting down
	}
	k.Logger.Info("scrubbed", "blocks", count, "bytes", read, "damaged", damaged, "took", time.Since(start).Round(time.Millisecond))
}

// scrubLimit limits the reads of a scrub such that they take half of the period.
func (k Keeper) scrubLimit() (*rate.Limiter, error) {
	var bytes int64
	err := k.eachBlock(func(_ *version.Handle, _ int, b *blocks.Reader) error {
		bytes += b.Size()
		return nil
	})
	return rate.NewLimiter(rate.Limit(float64(max(bytes, scrubBurst))/(k.ScrubPeriod/2).Seconds()), scrubBurst), err
}

// eachBlock calls f for every block that is served.
func (k Keeper) eachBlock(f func(h *version.Handle, partition int, b *blocks.Reader) error) error {
	for set := range k.Sets() {
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
