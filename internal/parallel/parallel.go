// Package parallel owns the distribution of numbered pieces of work over a number of workers.
package parallel

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// Run calls f for 0 … n-1, in order, at most so many at a time as there are workers, and waits for all. The
// first error cancels the others.
func Run(ctx context.Context, workers, n int, f func(context.Context, int) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(workers)
	for i := range n {
		g.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			return f(ctx, i)
		})
	}
	return g.Wait()
}
