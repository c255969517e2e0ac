package load

import (
	"context"
	"sync"
)

// streamDepth is how many batches wait between two goroutines.
const streamDepth = 4

// A stream passes batches from one goroutine, its producer, to another.
type stream struct {
	batches chan *batch
	err     error // why the stream ended early; read after batches is closed
}

// produce starts a goroutine that fills a stream. The stream ends when it
// returns, with the error that it returns; wg waits for that.
func produce(ctx context.Context, wg *sync.WaitGroup, fill func(context.Context, *stream) error) *stream {
	s := &stream{batches: make(chan *batch, streamDepth)}
	wg.Go(func() {
		lowerPriority()
		s.err = fill(ctx, s)
		close(s.batches)
	})
	return s
}

// send passes a batch on, which belongs to the receiver from then on.
func (s *stream) send(ctx context.Context, b *batch) error {
	select {
	case s.batches <- b:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// receive returns the next batch, to be released by the caller; nil at the
// end.
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

// pipe runs a producer and, on this goroutine, what consumes its stream. It
// returns when both have ended, with the error of the first that failed.
func pipe(ctx context.Context, fill func(context.Context, *stream) error, consume func(context.Context, *stream) error) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	return consume(ctx, produce(ctx, &wg, fill))
}

// each calls f with every batch of the stream.
func (s *stream) each(ctx context.Context, f func(*batch) error) error {
	for {
		b, err := s.receive(ctx)
		if b == nil || err != nil {
			return err
		}
		if err := f(b); err != nil {
			return err
		}
	}
}

// A filler collects records into batches for a stream.
type filler struct {
	s *stream
	b *batch
}

func (f *filler) add(ctx context.Context, s slot, key, value []byte, deleted bool) error {
	if f.b == nil {
		f.b = newBatch()
	}
	f.b.add(s, key, value, deleted)
	if f.b.full() {
		return f.flush(ctx)
	}
	return nil
}

func (f *filler) flush(ctx context.Context) error {
	b := f.b
	if b == nil {
		return nil
	}
	f.b = nil
	return f.s.send(ctx, b)
}
