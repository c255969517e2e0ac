package otlp

import (
	"log/slog"
	"sync"
	"time"
)

// complaintPeriod is how often it is said that spans do not get to the collector.
const complaintPeriod = time.Minute

// complaints are what the SDK says is wrong. A collector that is away is no
// trouble of the node's, so they are warnings, and few.
type complaints struct {
	log      *slog.Logger
	endpoint string

	mu     sync.Mutex
	last   time.Time
	unsaid int // since then
}

// Handle implements otel.ErrorHandler.
func (c *complaints) Handle(err error) {
	if err == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if !c.last.IsZero() && now.Sub(c.last) < complaintPeriod {
		c.unsaid++
		return
	}
	c.log.Warn("spans do not get to the collector", "endpoint", c.endpoint, "error", err, "unsaid", c.unsaid)
	c.last, c.unsaid = now, 0
}
