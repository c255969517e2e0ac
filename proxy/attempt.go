package proxy

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"sequins/observe/metrics"
	"sequins/observe/tracing"
)

// attempt is one request to one peer.
type attempt struct {
	*race
	peer  *peer
	zone  metrics.Zone
	stage int // 1 for the first attempt of a race
	began time.Time
	conn  *conn // nil until connected
	fresh bool  // do not use an idle connection: one was stale

	status int // of the peer's answer, 0 if there is none
	trace  *tracing.Attempt
}

// Reasons why an attempt has no usable answer.
var (
	errRefused  = errors.New("it answers with an error")
	errUnusable = errors.New("its answer cannot be used")
	errBusy     = errors.New("too many large values are being read from it")
	errLost     = errors.New("the race was over before it could be asked")
)

// judge returns an error if the answer is not usable.
func (a *attempt) judge() error {
	h := &a.conn.header
	a.status = h.status
	switch h.status {
	case http.StatusOK, http.StatusPartialContent:
		if h.length < 0 {
			return fmt.Errorf("%w: status %d without a length", errUnusable, h.status)
		}
	case http.StatusNotFound, http.StatusNotModified, http.StatusPreconditionFailed,
		http.StatusRequestEntityTooLarge, http.StatusRequestedRangeNotSatisfiable:
		if len(h.Version) == 0 {
			return ErrAbsent // the peer does not know the database
		}
	case http.StatusNotImplemented:
		return ErrAbsent
	default:
		if h.status >= 500 {
			return fmt.Errorf("%w: status %d", errRefused, h.status)
		}
		return fmt.Errorf("%w: status %d", errUnusable, h.status)
	}
	if string(h.Version) != a.q.Version {
		return fmt.Errorf("%w: it is from version %.80q", errUnusable, h.Version)
	}
	if asked := a.q.Content; len(asked) > 0 && string(h.Content) != string(asked) && (len(h.Content) > 0 || !a.c.opts.Upstream(a.peer.addr)) {
		return fmt.Errorf("%w: it is from content %.80q", errUnusable, h.Content)
	}
	if a.conn.streams() && !a.peer.beginStream(a.conn) {
		return errBusy
	}
	return nil
}

// runAsync performs the attempt on its own goroutine. It returns after the race has received the
// result or has ended.
func (a attempt) runAsync() {
	err := a.ask()
	if errors.Is(err, errLate) || errors.Is(err, errLost) {
		// There is no result to report: the race ends at the same deadline.
		a.drop()
		<-a.over
		a.ended(a.lost, nil)
		return
	}
	outcome, err := a.conclude(err)
	select {
	case a.results <- result{a.conn, err}:
		a.ended(outcome, err)
	case <-a.over:
		a.ended(a.lost, err)
		if err == nil {
			a.conn.done()
		}
	}
}

// ask sends the request, unless it was sent before, and waits for the answer.
func (a *attempt) ask() error {
	err := a.await()
	if a.stale(err) {
		a.drop()
		err = a.await()
	}
	if err == nil {
		err = a.judge()
	}
	return err
}

func (a *attempt) await() error {
	if a.conn != nil {
		if err := a.conn.SetDeadline(a.deadline); err != nil {
			return err
		}
		return a.conn.await()
	}
	if err := a.connect(); err != nil {
		return err
	}
	a.conn.out = a.trace.AppendHeader(append(a.conn.out[:0], a.request...))
	return a.conn.ask(a.race, a.deadline)
}

// stale reports whether the attempt failed because the peer had closed the idle connection. The
// next try uses a new connection.
func (a *attempt) stale(err error) bool {
	if a.conn == nil || !a.conn.pooled || a.fresh || !errors.Is(err, errUnanswered) {
		return false
	}
	a.fresh = true
	return true
}

// connect takes an idle connection or opens one. It waits for a slot until the race ends.
func (a *attempt) connect() (err error) {
	select {
	case a.peer.slots <- struct{}{}:
	case <-a.over:
		return errLost
	}
	if !a.fresh {
		a.conn = a.peer.take()
	}
	if a.conn == nil {
		if a.conn, err = a.peer.dial(); err != nil {
			a.peer.leave()
			return err
		}
	}
	select {
	case <-a.over: // a later race may use the connection
		a.peer.release(a.conn, true)
		a.conn = nil
		return errLost
	default:
		return nil
	}
}

// conclude records the outcome of the attempt. If err is not nil, conclude releases the connection
// and adds the peer's address to the error.
func (a *attempt) conclude(err error) (metrics.Outcome, error) {
	outcome := metrics.ProxyError
	switch {
	case err == nil:
		a.conn.since = time.Now()
		a.peer.observe(a.conn.since.Sub(a.began)/time.Duration(a.q.Scale), errLate)
		return metrics.ProxyOK, nil
	case errors.Is(err, ErrAbsent):
		outcome = metrics.ProxyAbsent
		a.conn.done()
	case errors.Is(err, errUnusable), errors.Is(err, errBusy):
		a.conn.done()
	case errors.Is(err, errRefused):
		a.peer.observe(a.c.stage, err)
		a.conn.done()
	default:
		a.drop()
		if a.c.ctx.Err() == nil { // otherwise Close caused the error
			a.peer.failed(err)
		}
	}
	return outcome, fmt.Errorf("peer %s: %w", a.peer.addr, err)
}

// drop closes the connection, if there is one. It must not hold a complete answer.
func (a *attempt) drop() {
	if a.conn != nil {
		a.conn.done()
		a.conn = nil
	}
}

// ended counts the attempt and ends its span. err is the reason why it has no usable answer.
func (a *attempt) ended(o metrics.Outcome, err error) {
	a.c.metrics.Done(a.stage, a.zone, o)
	a.trace.End(string(o), a.status, err)
}
