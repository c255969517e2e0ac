package zk

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// logFirst lines of each kind are logged at once, and later ones once per logEvery.
	logFirst = 3
	logEvery = 10 * time.Second
	// maxKinds bounds the kinds that are remembered. When it is exceeded, all are forgotten.
	maxKinds = 1000
)

// logLimiter limits the rate of log lines by kind.
type logLimiter struct {
	mu    sync.Mutex
	kinds map[string]*rate.Sometimes
}

func (l *logLimiter) of(kind string) *rate.Sometimes {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.kinds == nil || len(l.kinds) > maxKinds {
		l.kinds = make(map[string]*rate.Sometimes)
	}
	if l.kinds[kind] == nil {
		l.kinds[kind] = &rate.Sometimes{First: logFirst, Interval: logEvery}
	}
	return l.kinds[kind]
}

// logLimited logs a line unless too many of its kind were logged recently. It reports whether the line was logged.
func (s *Session) logLimited(kind string, level slog.Level, msg string, args ...any) (logged bool) {
	s.limiter.of(kind).Do(func() {
		s.log.Log(context.Background(), level, msg, args...)
		logged = true
	})
	return logged
}
