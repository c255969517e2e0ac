package node

import (
	"context"
	"errors"
	"time"

	"golang.org/x/time/rate"

	"sequins/blocks"
	"sequins/internal/sleep"
	"sequins/version"
)

// diskPeriod is how often the node asks the kernel how full the disk is.
const diskPeriod = time.Second

// sweepPeriod is how often the node asks the kernel which pages of its blocks are still in memory. In between, a
// lookup in a page that has just been dropped waits for the disk in a page fault, which holds up a thread. A node
// with many gigabytes of blocks takes longer, as asking takes 1 to 15 ms a gigabyte, and it rests sweepRest times as
// long as it asks: a request that comes meanwhile waits for less than a tenth of a millisecond, and the sweep never
// takes more than a twentieth of a processor.
const (
	sweepPeriod = time.Second
	sweepRest   = 19
)

// scrubBurst bounds a single read of a scrub, in bytes.
const scrubBurst = 2 << 20

// watchDisk keeps what the status says of the disk true, until ctx ends.
func (n *Node) watchDisk(ctx context.Context) {
	for sleep.For(ctx, diskPeriod) == nil {
		n.o.Metrics.Process.MeasureDisk()
	}
}

// sweep keeps what the blocks believe to be in memory true, until ctx ends.
func (n *Node) sweep(ctx context.Context) {
	failing := false
	for sleep.For(ctx, sweepPeriod) == nil {
		err := n.sweepOnce(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil && !failing {
			n.log.Warn("the kernel does not say what is in memory; lookups may wait for the disk", "error", err)
		}
		failing = err != nil
	}
}

// sweepOnce sweeps all blocks. Damage is reported as if a request had met it; another error of a block is returned in
// the end, and does not keep the others from being swept.
func (n *Node) sweepOnce(ctx context.Context) error {
	var first error
	err := n.eachBlock(func(h *version.Handle, p int, b *blocks.Reader) error {
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

// scrub reads every block through once a scrub period, within the scrub rate, until ctx ends.
// Damage is reported as if a request had met it, so that the block is loaded again.
func (n *Node) scrub(ctx context.Context) {
	if n.o.ScrubPeriod <= 0 {
		return
	}
	tick := time.NewTicker(n.o.ScrubPeriod)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		n.scrubOnce(ctx)
	}
}

// errLeaving ends the scrub and the sweep of a block whose version is being removed.
var errLeaving = errors.New("the version is being removed")

func (n *Node) scrubOnce(ctx context.Context) {
	start := time.Now()
	limit := rate.NewLimiter(rate.Inf, scrubBurst)
	if n.o.ScrubRate > 0 {
		limit.SetLimit(rate.Limit(n.o.ScrubRate))
	}
	var read int64
	count, damaged := 0, 0
	err := n.eachBlock(func(h *version.Handle, p int, b *blocks.Reader) error {
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
			n.log.Error("the scrub found a damaged block", "block", b.Name(), "version", h.Version(), "partition", p, "error", err)
			h.Report(p, b, err)
		}
		return nil
	})
	if err != nil {
		return // the node is shutting down
	}
	n.log.Info("scrubbed", "blocks", count, "bytes", read, "damaged", damaged, "took", time.Since(start).Round(time.Millisecond))
}

// eachBlock calls f for every block that is served.
func (n *Node) eachBlock(f func(h *version.Handle, partition int, b *blocks.Reader) error) error {
	for _, d := range *n.catalog.Load() {
		err := d.set.EachBlock(func(h *version.Handle, p int, b version.Block) error {
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
