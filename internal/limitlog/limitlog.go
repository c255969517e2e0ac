// Package limitlog logs errors of requests at most once a second each: what is wrong with one request is
// usually wrong with thousands.
package limitlog

import (
	"log/slog"
	"sync"
	"time"
)

// A Logger drops an error that follows another one with the same message within the same second. Errors with different
// messages do not hide each other. It is safe for concurrent use.
type Logger struct {
	logger *slog.Logger
	last   sync.Map // message → int64, the second of its last error
}

// New returns a Logger that writes to l.
func New(l *slog.Logger) *Logger { return &Logger{logger: l} }

// Error logs at level error. msg is a constant of the program: each is kept.
func (l *Logger) Error(msg string, args ...any) {
	now := time.Now().Unix()
	if before, _ := l.last.Swap(msg, now); before != now {
		l.logger.Error(msg, args...)
	}
}
