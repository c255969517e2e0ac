package node

import (
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"sequins/load"
	"sequins/source"
	"sequins/version"
)

// retries are the attempts at a version whose loads fail for a reason that may pass.
type retries struct {
	failed  int  // in a row
	planned bool // another attempt
}

// passing are the classes of errors after which a load is tried again before the next refresh.
var passing = []error{load.ErrSource, source.ErrChanged, load.ErrDied}

// retryLater plans another attempt at a load that has failed for a reason that
// may pass, so that it need not wait for the next refresh: the more have
// failed, the later. err is what the load has ended with.
func (d *db) retryLater(name string, err error) {
	f := d.facts[name]
	if f == nil {
		return // forgotten
	}
	if !slices.ContainsFunc(passing, func(class error) bool { return errors.Is(err, class) }) {
		f.retries.failed = 0
		return
	}
	f.retries.failed++
	if f.retries.planned {
		return // a refresh was faster
	}
	f.retries.planned = true
	wait := backoff(f.retries.failed)
	d.log.Warn("a load has failed and will be tried again", "outcome", load.Outcome(err), "version", name, "in", wait.Round(time.Millisecond))
	d.work(func() message {
		d.pause(wait)
		return retry{name}
	})
}

// backoff is how long to wait after so many failures in a row. It is not twice
// the same, so that nodes which failed together do not come back together.
func backoff(failed int) time.Duration {
	d := maxBackoff
	if failed < 10 {
		d = min(d, minBackoff<<(failed-1))
	}
	return d/2 + rand.N(d/2)
}

// A retry is due.
type retry struct{ name string }

// tell implements message.
func (r retry) tell(d *db) {
	if f := d.facts[r.name]; f != nil {
		f.retries.planned = false
	}
	d.handle(version.Retry{Version: r.name})
}
