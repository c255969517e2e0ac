// Package parallel owns the distribution of numbered pieces of work over a number of workers.
package parallel

import (
	"context"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// Run calls f for 0 … n-1, in order, with the given number of workers, and waits for all. The
// first error cancels the others.
func Run(ctx context.Context, workers, n int, f func(context.Context, int) error) error {
	g, ctx := errgroup.WithContext(ctx)
	var next atomic.Int64
	for range workers {
		g.Go(func() error {
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					return nil
				}
				if err := ctx.Err(); err != nil {
					return err
				}
				if err := f(ctx, i); err != nil {
					return err
				}
			}
		})
	}
	return g.Wait()
}
