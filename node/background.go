package node

import (
	"context"
	"sync"
	"time"

	"sequins/internal/sleep"
)

// A message is what follows from something outside of the goroutine of the db, such as the end of background work. It is called on that goroutine, which
// then looks at what has changed. An empty one only makes it look.
type message func()

// A background is the work of a db outside of its goroutine: listing, loading, retiring, deleting, and timers. What comes of it are messages.
type background struct {
	ctx      context.Context //nolint:containedctx // of all work
	cancel   context.CancelFunc
	messages chan message
	working  sync.WaitGroup
	closing  sync.WaitGroup // versions waiting for their readers
}

// work runs f on a goroutine that stop waits for, and processes the message that f returns.
func (b *background) work(f func() message) {
	b.working.Go(func() { b.send(f()) })
}

// sendAfter processes a message after a while.
func (b *background) sendAfter(wait time.Duration, m message) {
	b.work(func() message {
		_ = sleep.For(b.ctx, wait)
		return m
	})
}

// A timer is a message that comes later. It belongs to the goroutine of the db.
type timer struct {
	due    time.Time // zero if no message is to come
	cancel context.CancelFunc
}

// set has a message come at a time, in place of the one before.
func (t *timer) set(b *background, due time.Time, m message) {
	t.after(b, due, func(ctx context.Context) { _ = sleep.For(ctx, time.Until(due)) }, m)
}

// after has a message come after wait, which is expected to return at a time, or when its context ends.
func (t *timer) after(b *background, due time.Time, wait func(context.Context), m message) {
	t.stop()
	ctx, cancel := context.WithCancel(b.ctx)
	t.due, t.cancel = due, cancel
	b.work(func() message {
		wait(ctx)
		return func() {
			if ctx.Err() == nil { // it was not stopped
				t.stop()
				m()
			}
		}
	})
}

// stop takes back the message that is to come, if any.
func (t *timer) stop() {
	if t.cancel != nil {
		t.cancel()
	}
	*t = timer{}
}

// send sends a message to the db, unless it is stopped.
func (b *background) send(m message) {
	select {
	case b.messages <- m:
	case <-b.ctx.Done():
	}
}

// stop ends all background work, and drops its messages.
func (b *background) stop() {
	b.cancel()
	b.working.Wait()
}
