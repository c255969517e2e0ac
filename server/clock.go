package server

import (
	"net/http"
	"sync/atomic"
	"time"
)

// clock renders the Date header once a second. fasthttp does too, by a
// goroutine that nobody can stop.
type clock struct{ last atomic.Pointer[tick] }

type tick struct {
	second int64
	date   []byte
}

// date renders t, which is now.
func (c *clock) date(t time.Time) []byte {
	second := t.Unix()
	if last := c.last.Load(); last != nil && last.second == second {
		return last.date
	}
	next := &tick{second, t.UTC().AppendFormat(nil, http.TimeFormat)}
	c.last.Store(next)
	return next.date
}
