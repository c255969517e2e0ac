// Package turns decides when waiting loads begin.
//
// A [Queue] has a number of places. A [Turn] waits in it until a place is free and its [Windows] are open; of several, first
// attempts come before retries, then the one with the greatest priority, and equal ones in the order in which they entered. A turn that has a place keeps it
// until it leaves, whatever its windows do meanwhile.
//
// The queue has no goroutine. It decides whenever a turn enters, changes or leaves, and when a window opens, for which it sets
// one timer. [Windows] are pure: times of the day, in a time zone, from a text such as "22:00-06:00 Europe/Paris".
package turns

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// checkPeriod is the longest time after which the queue looks at the clock again while a turn waits for its window: the clock
// may have been set, or the machine suspended.
const checkPeriod = time.Minute

// Terms say when a turn may come.
type Terms struct {
	Retry    bool // the load has failed before: it comes after all that have not
	Priority int  // the greatest comes first
	Windows  Windows
}

// A Queue hands out places to turns. It is safe for concurrent use.
type Queue struct {
	mu      sync.Mutex
	free    int     // places
	entered uint64  // number of turns that have entered
	waiting []*Turn // in the order in which they come
	timer   *time.Timer
}

// New returns a queue with a number of places, at least 1.
func New(places int) *Queue { return &Queue{free: max(1, places)} }

// A Turn waits for a place in a Queue, or has one. Its methods may be called concurrently.
type Turn struct {
	q       *Queue
	terms   Terms
	number  uint64 // in the order of entering; 0: not yet
	state   state
	granted chan struct{}
}

// state is the state of a turn.
type state uint8

const (
	outside state = iota // it has not entered; next: waiting, left
	waiting              // next: placed, left
	placed               // it has a place; next: left
	left
)

// Turn returns a turn that does not wait yet: Set makes it enter the queue. Leave must be called at its end.
func (q *Queue) Turn() *Turn { return &Turn{q: q, granted: make(chan struct{})} }

// Set sets the terms of a turn. The first call makes it enter the queue; later ones do not change its place among turns of the
// same terms. Set has no effect on a turn that has a place or has left.
func (t *Turn) Set(terms Terms) {
	q := t.q
	q.mu.Lock()
	defer q.mu.Unlock()
	switch t.state {
	case outside:
		q.entered++
		t.number, t.state = q.entered, waiting
	case waiting:
		if terms.Retry == t.terms.Retry && terms.Priority == t.terms.Priority && terms.Windows.text == t.terms.Windows.text {
			return
		}
		q.remove(t)
	default:
		return
	}
	t.terms = terms
	i, _ := slices.BinarySearchFunc(q.waiting, t, inOrder)
	q.waiting = slices.Insert(q.waiting, i, t)
	q.decide()
}

// inOrder compares the order in which turns come.
func inOrder(a, b *Turn) int {
	switch {
	case a.terms.Retry == b.terms.Retry:
		return cmp.Or(cmp.Compare(b.terms.Priority, a.terms.Priority), cmp.Compare(a.number, b.number))
	case a.terms.Retry:
		return 1
	}
	return -1
}

// Granted is closed when the turn has a place.
func (t *Turn) Granted() <-chan struct{} { return t.granted }

// Leave frees the place of a turn, or ends its wait. It may be called again.
func (t *Turn) Leave() {
	q := t.q
	q.mu.Lock()
	defer q.mu.Unlock()
	switch t.state {
	case waiting:
		q.remove(t)
	case placed:
		q.free++
	}
	t.state = left
	q.decide()
}

// Waits describes what a turn waits for at a time, if that is a window: "" otherwise.
func (t *Turn) Waits(now time.Time) string {
	t.q.mu.Lock()
	defer t.q.mu.Unlock()
	if t.state != waiting {
		return ""
	}
	return t.terms.Windows.Waits(now)
}

// remove removes a waiting turn. q.mu is held.
func (q *Queue) remove(t *Turn) {
	if i := slices.Index(q.waiting, t); i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
	}
}

// decide hands out the free places, and sets the timer for the next window if a turn waits for one and there is a place for it. q.mu is held.
func (q *Queue) decide() {
	if q.timer != nil {
		q.timer.Stop()
		q.timer = nil
	}
	now := time.Now()
	var next time.Time
	opens := make(map[string]time.Time) // of windows
	q.waiting = slices.DeleteFunc(q.waiting, func(t *Turn) bool {
		if q.free == 0 {
			return false
		}
		at, known := opens[t.terms.Windows.text]
		if !known {
			at = t.terms.Windows.Next(now)
			opens[t.terms.Windows.text] = at
		}
		if at.After(now) {
			if next.IsZero() || at.Before(next) {
				next = at
			}
			return false
		}
		q.free--
		t.state = placed
		close(t.granted)
		return true
	})
	if q.free > 0 && !next.IsZero() {
		q.timer = time.AfterFunc(min(next.Sub(now), checkPeriod), func() {
			q.mu.Lock()
			defer q.mu.Unlock()
			q.decide()
		})
	}
}
