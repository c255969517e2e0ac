package load

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// pipeDepth is the number of batches buffered between two goroutines.
const pipeDepth = 4

// A sink receives records one after another. It must not keep key or value.
type sink func(to slot, key, value []byte, deleted bool) error

// pipe runs fill on its own goroutine and passes its records to the sink. It returns when both are
// done, with the error of the first that failed.
func pipe(ctx context.Context, fill func(context.Context, sink) error, to sink) error {
	g, ctx := errgroup.WithContext(ctx)
	batches := make(chan *batch, pipeDepth)
	send := func(b *batch) error {
		select {
		case batches <- b: // which the receiver then owns
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	g.Go(func() error {
		defer close(batches)
		b := newBatch()
		err := fill(ctx, func(to slot, key, value []byte, deleted bool) error {
			b.add(to, key, value, deleted)
			if !b.full() {
				return nil
			}
			full := b
			b = newBatch()
			return send(full)
		})
		if err != nil {
			return err
		}
		return send(b)
	})
	g.Go(func() error {
		for b := range batches {
			for i := range b.records {
				r := &b.records[i]
				if err := to(r.slot, b.key(r), b.value(r), r.deleted); err != nil {
					return err
				}
			}
			b.release()
		}
		return nil
	})
	return g.Wait()
}
