package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"sequins/internal/sleep"
	"sequins/internal/wire"
)

// call is one Get or MultiGet.
type call struct {
	c         *Client
	d         *database
	path      string
	request       // of MultiGet with its body; wants what the session has seen
	keys      int // of MultiGet
	limit     int64
	late      *lateness
	preferred func(m *partitions) []int
}

// run makes rounds of attempts until one has an answer, or there is no reason to expect one, or ctx ends.
func (cl *call) run(ctx context.Context) (*attempt, error) {
	c := cl.c
	ctx, cancel := context.WithTimeout(ctx, c.opts.Timeout)
	defer cancel()
	defer context.AfterFunc(c.ctx, cancel)()
	c.calls.Add(1)
	c.budget.earn()
	cl.d.refreshIfDue()
	var failures []*attempt
	for round := 0; ; round++ {
		a, last := cl.round(ctx)
		if len(last) > 1 || ctx.Err() == nil { // a round that ctx has ended at its beginning explains nothing
			failures = last
		}
		switch {
		case a != nil:
			return a, nil
		case c.ctx.Err() != nil:
			return nil, ErrClosed
		case ctx.Err() != nil, !cl.wait(ctx, pauseBefore(round+1, failures)):
			return nil, errorOf(cl.d.name, failures, ctx.Err())
		}
	}
}

// maxRounds is the number of rounds if no node has asked for a retry with 503: a node that was late or that restarts is
// given another chance, and nodes that cannot answer are not flooded.
const maxRounds = 3

// pauseBefore returns the pause before another round of attempts, or 0 if there is no reason for one.
func pauseBefore(round int, failures []*attempt) (pause time.Duration) {
	broken := false
	for _, f := range failures {
		switch {
		case f.final:
			return 0
		case f.temporary && (pause == 0 || f.retryAfter() < pause):
			pause = f.retryAfter()
		}
		broken = broken || f.failing || f.status >= http.StatusInternalServerError
	}
	if pause == 0 && broken && round < maxRounds {
		pause = minRetry << round
	}
	return pause
}

// wait waits for about the time of pause, and reports whether another round can begin before ctx ends.
func (cl *call) wait(ctx context.Context, pause time.Duration) bool {
	if pause == 0 {
		return false
	}
	pause = pause/2 + rand.N(pause/2+1)
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= pause {
		return false
	}
	return sleep.For(ctx, pause) == nil
}

// race is one round of attempts, of which at most two run at a time.
type race struct {
	*call
	rest     []*node // not asked yet
	results  chan *attempt
	running  []*attempt
	failures []*attempt
}

// round asks one node after the other until one answers, and a second one beside it if it is late.
func (cl *call) round(ctx context.Context) (*attempt, []*attempt) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := &race{call: cl, rest: cl.c.route(cl.d, cl.preferred), results: make(chan *attempt, 2)}
	r.start(ctx, false)
	late := time.NewTimer(r.patience())
	defer late.Stop()
	for len(r.running) > 0 {
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				r.overtaken()
			}
			return nil, append(r.failures, &attempt{node: r.running[0].node, err: errors.New("no answer yet")})
		case <-late.C:
			r.hedge(ctx)
		case got := <-r.results:
			if r.take(got) {
				return got, r.failures
			}
			if !got.final && r.start(ctx, false) {
				late.Reset(r.patience())
			}
		}
	}
	return nil, r.failures
}

// start asks the next node, if there is one. A hedged request goes to no failing one: if the first request is answered soon
// after, that would neither show that the node has recovered nor that it has not, and use up its pause.
func (r *race) start(ctx context.Context, hedge bool) bool {
	if len(r.rest) == 0 || hedge && r.rest[0].isFailing() {
		return false
	}
	a := r.newAttempt(r.rest[0])
	r.rest = r.rest[1:]
	if !r.c.spawn(func() { a.ask(ctx); r.results <- a }) {
		return false
	}
	r.running = append(r.running, a)
	r.c.attempts.Add(1)
	r.c.visits[a.node.zone.Load()].Add(1)
	return true
}

// patience returns the time after which the next node is asked beside the one that was asked last.
func (r *race) patience() time.Duration {
	if n := len(r.running); n > 0 && len(r.rest) > 0 && r.running[n-1].node.isNear() && !r.rest[0].isNear() {
		return time.Duration(r.late.leaving.Load())
	}
	return r.late.estimate()
}

// hedge asks another node beside the one that is late, unless its answer is arriving.
func (r *race) hedge(ctx context.Context) {
	if len(r.running) != 1 || r.running[0].began.Load() {
		return
	}
	if r.c.budget.spend() && r.start(ctx, true) {
		r.c.hedged.Add(1)
	}
}

// take takes the result of an attempt, and reports whether it ends the race with an answer.
func (r *race) take(got *attempt) bool {
	r.running = slices.DeleteFunc(r.running, func(a *attempt) bool { return a == got })
	if got.err != nil {
		r.failures = append(r.failures, got)
		if got.failing {
			got.node.fail(r.c.now())
		}
		if got.failing || got.status >= http.StatusInternalServerError {
			r.d.suspect()
		}
		return false
	}
	got.node.answered()
	if m := r.d.current.Load(); m != nil && m.version != got.version {
		r.d.suspect()
	}
	r.overtaken()
	return true
}

// overtaken counts the late ones of the running attempts against their nodes, because another attempt or the deadline of
// the call was faster.
func (r *race) overtaken() {
	for _, a := range r.running {
		waited := a.waited()
		if waited < a.due {
			continue
		}
		if !a.began.Load() {
			r.late.observe(waited)
		}
		a.node.lost(r.c.now())
	}
}

// ask asks the node. The node is not to blame for an attempt without an answer if the race has ended.
func (a *attempt) ask(ctx context.Context) {
	if a.err = a.try(ctx); a.err == nil {
		a.check()
		return
	}
	a.status = 0
	a.final = errors.Is(a.err, ErrTooLarge)
	a.failing = !a.final && ctx.Err() == nil
}

// check sets why the answer cannot be used.
func (a *attempt) check() {
	behind := a.version != "" && a.version < a.want.AtLeast
	switch {
	case behind && (a.status == http.StatusOK || a.status == http.StatusNotFound || a.status == http.StatusServiceUnavailable):
		a.err, a.temporary = fmt.Errorf("%w: it serves %s", ErrBehind, a.version), true
	case a.status == http.StatusOK && a.version == "":
		a.err, a.failing = errors.New("an answer without a version, which is not of sequins"), true
	case a.status == http.StatusOK && a.body != nil:
		a.checkBatch()
	case a.status == http.StatusOK, a.status == http.StatusNotFound && a.version != "" && a.body == nil:
	case a.status == http.StatusServiceUnavailable:
		a.err, a.temporary, a.failing = a.refusal(), true, true
	default:
		a.err = a.refusal()
		a.final = a.status == http.StatusRequestEntityTooLarge || a.node.seed && errors.Is(a.err, ErrNoDB)
	}
}

// checkBatch takes the values of a MultiGet from the answer.
func (a *attempt) checkBatch() {
	data := a.data
	a.data = nil // a failed attempt does not keep it
	if media := a.header.Get("Content-Type"); media != wire.Bytes {
		a.err, a.failing = fmt.Errorf("an answer of type %.100q", media), true
		return
	}
	a.values, a.err = decodeBatch(data, a.keys, a.c.opts.MaxValue)
	a.final = errors.Is(a.err, ErrTooLarge)
	a.failing = a.err != nil && !a.final
}
