package zk

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// logFirst lines of one kind are logged at once, later ones every logEvery.
	logFirst = 3
	logEvery = 10 * time.Second
	// maxKinds bounds what is remembered of kinds. With one more, all are forgotten.
	maxKinds = 1000
)

// lines remembers which kinds of lines were logged, so that there is never a flood of one.
type lines struct {
	mu    sync.Mutex
	kinds map[string]*rate.Sometimes
}

func (l *lines) of(kind string) *rate.Sometimes {
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

// say logs, but only so many lines of one kind in a while. It reports whether it has.
func (s *Session) say(kind string, level slog.Level, msg string, args ...any) (said bool) {
	s.lines.of(kind).Do(func() {
		s.log.Log(context.Background(), level, msg, args...)
		said = true
	})
	return said
}
