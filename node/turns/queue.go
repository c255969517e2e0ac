// Package turns decides when waiting loads begin.
//
// A [Queue] has a number of places. A [Turn] waits in it until a place is free and its [Windows] are open; of several, first
// attempts come before retries, then the one with the greatest priority, and equal ones in the order in which they entered. A turn that has a place keeps it
// until it yields or leaves, whatever its windows do meanwhile.
//
// The queue has no goroutine and no timer. It decides whenever a turn enters, changes or leaves, by the windows that are open then: who waits for one
// calls Set again when it opens. [Windows] are pure: times of the day, in a time zone, from a text such as "22:00-06:00 Europe/Paris".
package turns

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

// Terms say when a turn may come.
type Terms struct {
	Retry    bool // the load has failed before: it comes after all that have not
	Priority int  // the greatest comes first
	Windows  Windows
}

// A Queue hands out places to turns. It is safe for concurrent use.
type Queue struct {
	mu      sync.Mutex
	free    int    // places
	entered uint64 // number of turns that have entered
	waiting []*Turn
}

// New returns a queue with a number of places, at least 1.
func New(places int) *Queue { return &Queue{free: max(1, places)} }

// A Turn waits for a place in a Queue, or has one. Its methods may be called concurrently.
type Turn struct {
	q       *Queue
	terms   Terms
	number  uint64 // in the order of entering; 0: not yet
	state   state
	granted chan struct{} // another one after each Yield
}

// state is the state of a turn.
type state uint8

const (
	outside state = iota // it has not entered, or has yielded; next: waiting, left
	waiting              // next: placed, left
	placed               // it has a place; next: outside, left
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
		q.waiting = append(q.waiting, t)
	case placed, left:
		return
	}
	t.terms = terms
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
func (t *Turn) Granted() <-chan struct{} {
	t.q.mu.Lock()
	defer t.q.mu.Unlock()
	return t.granted
}

// Wait waits for a place until ctx ends, whose error it returns then.
func (t *Turn) Wait(ctx context.Context) error {
	select {
	case <-t.Granted():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Yield frees the place of a turn, which enters the queue again, behind those that wait, with the next call of Set.
func (t *Turn) Yield() {
	q := t.q
	q.mu.Lock()
	defer q.mu.Unlock()
	if t.state != placed {
		return
	}
	q.free++
	t.state, t.granted = outside, make(chan struct{})
	q.decide()
}

// Leave frees the place of a turn, or ends its wait. It may be called again.
func (t *Turn) Leave() {
	q := t.q
	q.mu.Lock()
	defer q.mu.Unlock()
	if t.state == placed {
		q.free++
	}
	t.state = left
	q.decide()
}

// decide hands out the free places. q.mu is held.
func (q *Queue) decide() {
	now := time.Now()
	slices.SortFunc(q.waiting, inOrder)
	q.waiting = slices.DeleteFunc(q.waiting, func(t *Turn) bool {
		if t.state == waiting && q.free > 0 && t.terms.Windows.isOpen(now) {
			q.free--
			t.state = placed
			close(t.granted)
		}
		return t.state != waiting
	})
}
