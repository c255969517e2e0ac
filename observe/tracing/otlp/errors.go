package otlp

import (
	"log/slog"
	"sync"
	"time"
)

// errorPeriod is the minimum interval between two warnings about the collector.
const errorPeriod = time.Minute

// errorHandler logs errors of the SDK. They are rate-limited warnings, since an
// unreachable collector does not affect the node's service.
type errorHandler struct {
	log      *slog.Logger
	endpoint string

	mu         sync.Mutex
	last       time.Time
	suppressed int // errors not logged since then
}

// Handle implements otel.ErrorHandler.
func (c *errorHandler) Handle(err error) {
	if err == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if !c.last.IsZero() && now.Sub(c.last) < errorPeriod {
		c.suppressed++
		return
	}
	c.log.Warn("cannot send spans to the collector", "endpoint", c.endpoint, "error", err, "suppressed", c.suppressed)
	c.last, c.suppressed = now, 0
}
