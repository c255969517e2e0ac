// Package limitlog logs errors of requests at most once a second: what is wrong with one request is
// usually wrong with thousands.
package limitlog

import (
	"log/slog"
	"sync/atomic"
	"time"
)

// A Logger drops an error that follows another one within the same second. It is safe for concurrent use.
type Logger struct {
	logger *slog.Logger
	last   atomic.Int64 // the second of the last error
}

// New returns a Logger that writes to l.
func New(l *slog.Logger) *Logger { return &Logger{logger: l} }

// Error logs at level error.
func (l *Logger) Error(msg string, args ...any) {
	now := time.Now().Unix()
	if last := l.last.Load(); last != now && l.last.CompareAndSwap(last, now) {
		l.logger.Error(msg, args...)
	}
}
