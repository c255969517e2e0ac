package expect

import (
	"bytes"
	"log/slog"
	"sync"
)

// Output records a log, or what a process prints, and can be read meanwhile. The zero value is ready to use.
type Output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

// String returns the output so far.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// Logger returns a logger whose lines are recorded.
func (o *Output) Logger() *slog.Logger { return slog.New(slog.NewTextHandler(o, nil)) }
