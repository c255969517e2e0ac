package load

import (
	"fmt"
	"sync"
	"time"
)

// maxStall is how long calls of the source may run without one of them returning. Otherwise a hanging file
// system or server would block the load, and its slot, forever.
const maxStall = 10 * time.Minute

// calls tracks running calls of a source. The zero value is ready.
type calls struct {
	mu    sync.Mutex
	n     int
	since time.Time // when a call last returned, or the first one began
}

func (c *calls) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == 0 {
		c.since = time.Now()
	}
	c.n++
}

func (c *calls) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n--
	c.since = time.Now()
}

// Stalled returns an error if running calls of the source have made no progress for maxStall.
func (l *Loader) Stalled() error {
	c := &l.src.calls
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == 0 || time.Since(c.since) < maxStall {
		return nil
	}
	return fmt.Errorf("%w: it has not answered for %v", ErrSource, maxStall)
}
