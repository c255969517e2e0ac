package proxy

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"sequins/observe/metrics"
)

// race is the state of one Fetch.
type race struct {
	c        *Client
	q        Query         // its slices, but for Body, are not for goroutines: they may outlive Fetch
	stage    time.Duration // Client.stage, scaled
	began    time.Time
	deadline time.Time

	rest    []string // addresses not picked yet; the last first are asked before the others
	first   int
	few     [3]string
	failing []*peer // picked, to be asked last
	stages  int     // attempts started

	// The following fields are used only when attempts run on their own goroutines, see run.
	request []byte
	results chan result
	over    chan struct{}   // closed when Fetch returns
	lost    metrics.Outcome // outcome of attempts still running when Fetch returns
	pending int
	newest  *peer // the peer that the stage timer measures
	errs    []error

	answer Answer
	value  body // of the answer
}

// result is the result of an attempt: a connection with a usable answer, or an error.
type result struct {
	conn *conn
	err  error
}

// elsewhere makes next pick peers of other zones first, or again those of this one: the zone of a peer that is silent may be lost.
func (r *race) elsewhere() {
	if r.first > 0 {
		slices.Reverse(r.rest)
		r.first = len(r.rest) - r.first
	}
}

// next picks the next peer: healthy peers in the zone of this node in random order, then other healthy ones in
// random order, then failing ones. It returns nil when all have been picked.
func (r *race) next() *peer {
	for n := len(r.rest); n > 0; n = len(r.rest) {
		i := 0
		if r.first > 0 {
			i = n - r.first
			r.first--
		}
		if n-i > 1 {
			i += rand.IntN(n - i)
		}
		addr := r.rest[i]
		r.rest[i] = r.rest[n-1]
		r.rest = r.rest[:n-1]
		p := r.c.peer(addr)
		switch {
		case p == nil: // the client is closed
		case p.failing(r.began):
			r.failing = append(r.failing, p)
		default:
			return p
		}
	}
	n := len(r.failing)
	if n == 0 {
		return nil
	}
	p := r.failing[n-1]
	r.failing = r.failing[:n-1]
	return p
}

// draw creates an attempt for the next peer. The attempt must be ended once.
func (r *race) draw() (a attempt, ok bool) {
	p := r.next()
	if p == nil {
		return a, false
	}
	r.stages++
	r.newest = p
	r.c.metrics.InFlight.Add(1)
	return attempt{race: r, peer: p, zone: r.c.opts.Zones.where(p.addr), stage: r.stages, began: r.began, trace: r.q.Trace.Attempt(r.q.method(), p.addr, r.stages)}, true
}

// maxEager is the longest body, in bytes, that begin sends. A stage may end while a longer one is being sent, and the rest
// of it would be lost.
const maxEager = 32 << 10

// begin makes the first attempt on the caller's goroutine if an idle connection is available, for
// at most one stage.
func (r *race) begin(ctx context.Context) (*Answer, error) {
	a, ok := r.draw()
	if !ok {
		return nil, r.failure(ErrNoPeers)
	}
	if len(r.q.Body) <= maxEager {
		a.conn = a.peer.tryTake()
	}
	if a.conn == nil {
		r.launch(a)
		return r.run(ctx)
	}
	c := a.conn
	c.out = a.trace.AppendHeader(r.q.appendTo(c.out[:0]))
	err := c.ask(r, r.began.Add(r.stage))
	if errors.Is(err, errLate) {
		err = c.awaitRest()
	}
	if err == nil {
		err = a.judge()
	}
	switch {
	case errors.Is(err, errLate):
		a.peer.observe(r.c.stage, err)
		r.launch(a)
		r.elsewhere()
		r.another()
		return r.run(ctx)
	case a.stale(err):
		a.drop()
		r.launch(a)
		return r.run(ctx)
	}
	if r.conclude(a, err) {
		return r.win(c), nil
	}
	return r.run(ctx)
}

// run continues when the first attempt did not succeed, until an attempt wins, no peer is left, or
// the time is over.
func (r *race) run(ctx context.Context) (*Answer, error) {
	r.prepare()
	defer close(r.over)
	stage, end := time.NewTimer(r.stage), time.NewTimer(time.Until(r.deadline))
	defer stage.Stop()
	defer end.Stop()
	for {
		if r.pending == 0 && !r.another() {
			return nil, r.failure(ErrNoPeers)
		}
		select {
		case res := <-r.results:
			r.pending--
			if res.err == nil {
				return r.win(res.conn), nil
			}
			r.errs = append(r.errs, res.err)
			if r.another() {
				stage.Reset(r.stage)
			}
		case <-stage.C:
			r.newest.observe(r.c.stage, errLate)
			r.elsewhere()
			if r.another() {
				stage.Reset(r.stage)
			}
		case <-end.C:
			r.lost = metrics.ProxyTimeout
			return nil, r.failure(context.DeadlineExceeded)
		case <-ctx.Done():
			return nil, r.failure(ctx.Err())
		}
	}
}

// prepare creates what attempts on their own goroutines need.
func (r *race) prepare() {
	if r.over == nil {
		r.request = r.q.appendTo(nil)
		r.results = make(chan result)
		r.over = make(chan struct{})
		r.lost = metrics.ProxyCancelled
	}
}

// another starts an attempt with the next peer, if there is one.
func (r *race) another() bool {
	a, ok := r.draw()
	if ok {
		a.began = time.Now()
		r.launch(a)
	}
	return ok
}

// launch runs an attempt on its own goroutine.
func (r *race) launch(a attempt) {
	r.prepare()
	if !r.c.start(a.runAsync) {
		r.conclude(a, errClosed)
		return
	}
	r.pending++
}

// conclude records an attempt that ended on the caller's goroutine.
func (r *race) conclude(a attempt, err error) (won bool) {
	outcome, err := a.conclude(err)
	a.ended(outcome, err)
	if err != nil {
		r.errs = append(r.errs, err)
	}
	return err == nil
}

// win returns the answer on a connection as the answer of the race.
func (r *race) win(c *conn) *Answer {
	h := &c.header
	r.value = body{conn: c}
	r.answer = Answer{Peer: c.peer.addr, Status: h.status, Length: h.length, Header: h.Header, Body: &r.value}
	if c.whole() {
		r.answer.Value = c.body
	}
	return &r.answer
}

// failure wraps err with the errors of all attempts, in one line.
func (r *race) failure(err error) error {
	var all strings.Builder
	absent := false
	for _, e := range r.errs {
		fmt.Fprintf(&all, "; %v", e)
		absent = absent || errors.Is(e, ErrAbsent)
	}
	if absent {
		err = fmt.Errorf("%w (%w)", err, ErrAbsent)
	}
	return fmt.Errorf("asking peers for version %s (%d asked, no answer from %d within %v): %w%s",
		r.q.Version, r.stages, r.pending, time.Since(r.began).Round(time.Millisecond), err, all.String())
}
