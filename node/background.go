package node

import (
	"context"
	"sync"
	"time"

	"sequins/internal/sleep"
)

// A background is the work of a db outside of its goroutine: listing, loading, retiring, deleting, and timers. What comes of it are messages.
type background struct {
	ctx      context.Context //nolint:containedctx // of all work
	cancel   context.CancelFunc
	messages chan message
	working  sync.WaitGroup
	closing  sync.WaitGroup // versions waiting for their readers
	stopped  chan struct{}  // closed when messages are no longer received
}

// work runs f on a goroutine that stop waits for, and processes the message that f returns.
func (b *background) work(f func() message) {
	b.working.Go(func() { b.send(f()) })
}

// tellAfter processes a message after a while.
func (b *background) tellAfter(wait time.Duration, m message) {
	b.work(func() message {
		b.pause(wait)
		return m
	})
}

// tellAt processes a message at a time. It comes early if cancel is called, so its receiver has to know when it is due.
func (b *background) tellAt(at time.Time, m message) (cancel context.CancelFunc) {
	ctx, cancel := context.WithCancel(b.ctx)
	b.work(func() message {
		_ = sleep.For(ctx, time.Until(at))
		return m
	})
	return cancel
}

// pause waits, in background work. It returns false if the db is stopped first.
func (b *background) pause(wait time.Duration) bool {
	return sleep.For(b.ctx, wait) == nil
}

// send sends a message to the db, unless it has stopped.
func (b *background) send(m message) {
	select {
	case b.messages <- m:
	case <-b.stopped:
	}
}

// stop ends all background work.
func (b *background) stop() {
	b.cancel()
	done := make(chan struct{})
	go func() {
		b.working.Wait()
		close(done)
	}()
	for {
		select {
		case <-b.messages: // dropped
		case <-done:
			close(b.stopped)
			return
		}
	}
}
