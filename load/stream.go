package load

import (
	"context"
	"sync"
)

// streamDepth is the number of batches buffered between two goroutines.
const streamDepth = 4

// A stream passes batches from one goroutine, its producer, to another.
type stream struct {
	batches chan *batch
	err     error // why the stream ended early; read it after batches is closed
}

// produce starts a goroutine that runs fill with the stream as its sink. The stream ends when fill
// returns, with its error. wg waits for the goroutine.
func produce(ctx context.Context, wg *sync.WaitGroup, fill func(context.Context, sink) error) *stream {
	s := &stream{batches: make(chan *batch, streamDepth)}
	wg.Go(func() {
		s.err = s.fill(ctx, fill)
		close(s.batches)
	})
	return s
}

// fill collects records into batches.
func (s *stream) fill(ctx context.Context, fill func(context.Context, sink) error) error {
	b := newBatch()
	err := fill(ctx, func(to slot, key, value []byte, deleted bool) error {
		b.add(to, key, value, deleted)
		if !b.full() {
			return nil
		}
		full := b
		b = newBatch()
		return s.send(ctx, full)
	})
	if err != nil || len(b.records) == 0 {
		return err
	}
	return s.send(ctx, b)
}

// send passes a batch to the receiver, which then owns it.
func (s *stream) send(ctx context.Context, b *batch) error {
	select {
	case s.batches <- b:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// receive returns the next batch, which the caller must release; nil at the end.
func (s *stream) receive(ctx context.Context) (*batch, error) {
	select {
	case b, ok := <-s.batches:
		if !ok {
			return nil, s.err
		}
		return b, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// A sink receives records one after another. It must not keep key or value.
type sink func(to slot, key, value []byte, deleted bool) error

// pipe runs fill on its own goroutine and passes its records to the sink. It returns when both are
// done, with the error of the first that failed.
func pipe(ctx context.Context, fill func(context.Context, sink) error, to sink) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	return produce(ctx, &wg, fill).drain(ctx, to)
}

// drain passes all records of the stream to a sink.
func (s *stream) drain(ctx context.Context, to sink) error {
	for {
		b, err := s.receive(ctx)
		if b == nil || err != nil {
			return err
		}
		for i := range b.records {
			r := &b.records[i]
			if err := to(r.slot, b.key(r), b.value(r), r.deleted); err != nil {
				return err
			}
		}
		b.release()
	}
}
