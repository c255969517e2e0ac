package proxy

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"sequins/metrics"
	"sequins/tracing"
)

// attempt is one peer being asked.
type attempt struct {
	*race
	peer  *peer
	stage int // 1 for the first of a race
	began time.Time
	conn  *conn // on which it has been asked, nil before
	fresh bool  // take no old connection any more: one has failed

	status int // of the peer's answer, 0 before
	trace  *tracing.Attempt
}

// What answers there are, beside those that can be used.
var (
	errAbsent   = errors.New("it does not have the version or the partition")
	errRefused  = errors.New("it answers with an error")
	errUnusable = errors.New("its answer cannot be used")
	errBusy     = errors.New("too many large values are being read from it")
	errLost     = errors.New("the race was over before it could be asked")
)

// judge says whether the answer can be used.
func (a *attempt) judge() error {
	h := &a.conn.header
	a.status = h.status
	switch h.status {
	case http.StatusOK, http.StatusPartialContent:
		if h.length < 0 {
			return fmt.Errorf("%w: status %d without a length", errUnusable, h.status)
		}
	case http.StatusNotFound, http.StatusNotModified, http.StatusPreconditionFailed, http.StatusRequestedRangeNotSatisfiable:
		if len(h.Version) == 0 {
			return errAbsent // it knows no such db
		}
	case http.StatusNotImplemented:
		return errAbsent
	default:
		if h.status >= 500 {
			return fmt.Errorf("%w: status %d", errRefused, h.status)
		}
		return fmt.Errorf("%w: status %d", errUnusable, h.status)
	}
	if string(h.Version) != a.version {
		return fmt.Errorf("%w: it is from version %.80q", errUnusable, h.Version)
	}
	if a.conn.streams() && !a.peer.beginStream(a.conn) {
		return errBusy
	}
	return nil
}

// beside is an attempt on a goroutine of its own. It ends when it has told the race, or when
// that is over.
func (a attempt) beside() {
	err := a.ask()
	if errors.Is(err, errLate) || errors.Is(err, errLost) {
		// There is nothing to tell: when an answer is late the time of the race
		// is over, too, or will be in a moment.
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

// ask waits for the answer, which has to be asked for first if it was not yet.
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
		if err := a.conn.until(a.deadline, 0); err != nil {
			return err
		}
		return a.conn.await()
	}
	if err := a.connect(); err != nil {
		return err
	}
	a.conn.out = a.trace.AppendHeader(append(a.conn.out[:0], a.request...))
	return a.conn.ask(a.head, a.deadline, 0)
}

// stale says that an attempt has failed because the connection was an old one,
// which the peer had closed meanwhile. The next one is new.
func (a *attempt) stale(err error) bool {
	if a.conn == nil || !a.conn.pooled || a.fresh || !errors.Is(err, errUnanswered) {
		return false
	}
	a.fresh = true
	return true
}

// connect gets a connection, and waits for one while the race lasts.
func (a *attempt) connect() (err error) {
	select {
	case a.peer.slots <- struct{}{}:
	case <-a.over:
		return errLost
	}
	if !a.fresh {
		a.conn = a.peer.take(time.Now())
	}
	if a.conn == nil {
		if a.conn, err = a.peer.dial(); err != nil {
			a.peer.leave()
			return err
		}
	}
	select {
	case <-a.over: // the next race may have the connection
		a.peer.release(a.conn, true)
		a.conn = nil
		return errLost
	default:
		return nil
	}
}

// conclude takes up how the attempt has ended: well, with the answer on its
// connection, or with an error. The connection is then given back, and the
// peer's name added to the error.
func (a *attempt) conclude(err error) (metrics.Outcome, error) {
	outcome := metrics.ProxyError
	switch {
	case err == nil:
		a.conn.since = time.Now()
		a.peer.observe(a.conn.since.Sub(a.began), errLate)
		return metrics.ProxyOK, nil
	case errors.Is(err, errAbsent):
		outcome = metrics.ProxyAbsent
		a.conn.done()
	case errors.Is(err, errUnusable), errors.Is(err, errBusy):
		a.conn.done()
	case errors.Is(err, errRefused):
		a.peer.observe(a.c.stage, err)
		a.conn.done()
	default:
		a.drop()
		if a.c.ctx.Err() == nil { // or it is Close that has done it
			a.peer.failed(err)
		}
	}
	return outcome, fmt.Errorf("peer %s: %w", a.peer.addr, err)
}

// drop gives the connection up, if there is one, on which no answer is whole: it
// is closed.
func (a *attempt) drop() {
	if a.conn != nil {
		a.conn.done()
		a.conn = nil
	}
}

// ended counts the attempt, and ends its span. err is why there is no answer that
// could be used.
func (a *attempt) ended(o metrics.Outcome, err error) {
	a.c.metrics.Done(a.stage, o)
	a.trace.End(o.String(), a.status, err)
}
