package zk

import (
	"context"
	"log/slog"
	"time"

	"golang.org/x/time/rate"
)

// logFirst lines of each kind are logged at once, and later ones once per logEvery.
const (
	logFirst = 3
	logEvery = 10 * time.Second
)

// logLimited logs a line unless too many of its kind were logged recently. It reports whether the line was logged. kind is a constant of the
// program: each is kept.
func (s *Session) logLimited(kind string, level slog.Level, msg string, args ...any) (logged bool) {
	limit, _ := s.limits.LoadOrStore(kind, &rate.Sometimes{First: logFirst, Interval: logEvery})
	limit.(*rate.Sometimes).Do(func() {
		s.o.Logger.Log(context.Background(), level, msg, args...)
		logged = true
	})
	return logged
}
