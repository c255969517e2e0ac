package balance

import (
	"errors"
	"slices"
	"time"
)

// Summary is what became of some requests.
type Summary struct {
	Requests    int
	Connections int // failed without a complete answer
	Statuses    int // failed by their status
	NoneReady   int // requests for which no node was ready
	Wrong       int // had an answer that Options.Check refused
	First       error
	P99         time.Duration // of the requests that did not fail
	// Longest is the longest time from when a request was due until it was answered or had failed; a failed request
	// counts until the next request that was answered.
	Longest time.Duration
}

// Failures is how many requests failed.
func (s Summary) Failures() int { return s.Connections + s.Statuses + s.NoneReady + s.Wrong }

// Summarize counts requests. It changes their order.
func Summarize(requests []Request) Summary {
	slices.SortFunc(requests, func(a, b Request) int { return int(a.Due - b.Due) })
	s := Summary{Requests: len(requests)}
	var times []time.Duration
	var last time.Duration
	for _, r := range requests {
		last = max(last, r.End)
	}
	next := last // end of the first answer to a request that is due later
	for _, r := range slices.Backward(requests) {
		if r.Err == nil {
			next = min(next, r.End)
			times = append(times, r.End-r.Due)
		}
		s.Longest = max(s.Longest, r.End-r.Due)
		if r.Err != nil {
			s.Longest = max(s.Longest, next-r.Due)
		}
	}
	for _, r := range requests {
		s.count(r)
	}
	if slices.Sort(times); len(times) > 0 {
		s.P99 = times[len(times)*99/100]
	}
	return s
}

func (s *Summary) count(r Request) {
	if r.Err == nil {
		return
	}
	if s.First == nil {
		s.First = r.Err
	}
	switch {
	case errors.Is(r.Err, errNoneReady):
		s.NoneReady++
	case r.Wrong:
		s.Wrong++
	case r.Code != 0:
		s.Statuses++
	default:
		s.Connections++
	}
}
