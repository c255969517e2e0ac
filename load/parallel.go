package load

import (
	"context"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// parallel calls f for 0 … n-1, in order, with the given number of workers, and waits for all. The
// first error cancels the others.
func parallel(ctx context.Context, workers, n int, f func(context.Context, int) error) error {
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
