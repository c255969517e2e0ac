package node

import (
	"context"
	"sync"
	"time"
)

// A message is what follows from something outside of the goroutine of the db, such as the end of background work. It is called on that goroutine, which
// then looks at what has changed. An empty one only makes it look.
type message func()

// A background is the work of a db outside of its goroutine: listing, loading, measuring and deleting. What comes of it are messages.
type background struct {
	ctx      context.Context //nolint:containedctx // of all work
	cancel   context.CancelFunc
	messages chan message
	working  sync.WaitGroup
	closing  sync.WaitGroup // versions waiting for their readers
	alarm    time.Time      // when the goroutine looks again without a message; each look sets it anew
}

// work runs f on a goroutine that stop waits for, and processes the message that f returns.
func (b *background) work(f func() message) {
	b.working.Go(func() { b.send(f()) })
}

// maxPause is the longest time between two looks of a database, of which a node may have thousands. What is due by the clock of the day, as a window is,
// is seen so soon after the clock was set.
const maxPause = 10 * time.Minute

// ask calls f as a message, and waits until it has returned or ctx ends.
func (b *background) ask(ctx context.Context, f message) error {
	done := make(chan struct{})
	b.send(func() {
		f()
		close(done)
	})
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// isDue reports whether a time has come. Until then, the goroutine of the db looks again at that time. A zero time never comes.
func (b *background) isDue(at time.Time) bool {
	switch {
	case at.IsZero():
		return false
	case time.Now().Before(at):
		b.lookAt(at)
		return false
	}
	return true
}

// lookAt makes the goroutine of the db look again at a time, or earlier.
func (b *background) lookAt(at time.Time) {
	if at.Before(b.alarm) {
		b.alarm = at
	}
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
