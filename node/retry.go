package node

import (
	"math/rand/v2"
	"time"

	"sequins/version"
)

// maxFaultyBackoff bounds the pauses between attempts at a version that is itself
// at fault. Reading it again costs much and helps only if somebody repairs it.
const maxFaultyBackoff = time.Hour

// retries are the attempts at a version that fails.
type retries struct {
	failed  int       // in a row
	last    time.Time // when the last one failed
	planned bool      // another attempt
}

// retryLater plans another attempt at each version that has just failed, so that
// no refresh is needed: the more attempts have failed, the later.
func (d *db) retryLater(before version.State) {
	for _, v := range d.state.Entries {
		old, _ := before.Entry(v.Name)
		if v.Failed && !old.Failed && v.Exit == version.Staying {
			d.planRetry(old, v)
			d.lookFurther()
		}
	}
}

// lookFurther has more versions listed if all have failed that were and are newer
// than the current one: one of the others may be good.
func (d *db) lookFurther() {
	for _, name := range d.state.Listed {
		if v, _ := d.state.Entry(name); name > d.state.Current && v.Reason == "" {
			return
		}
	}
	d.startListing(true)
}

// planRetry plans another attempt at v, which was old before it failed. The pauses begin anew after it was well for long,
// not after an attempt that took long.
func (d *db) planRetry(old, v version.Entry) {
	r := &d.facts[v.Name].retries
	limit := maxBackoff
	if v.Faulty {
		limit = maxFaultyBackoff
	}
	if old.Reason == "" && time.Since(r.last) > 2*limit {
		r.failed = 0
	}
	r.failed++
	r.last = time.Now()
	if r.planned {
		return // a refresh was faster
	}
	r.planned = true
	wait := backoff(r.failed, limit)
	d.log.Info("a version that failed will be tried again", "version", v.Name, "in", wait.Round(time.Millisecond))
	d.work(func() message {
		d.pause(wait)
		return retry{v.Name}
	})
}

// backoff is how long to wait after so many failures in a row: twice as long
// after each, and at most limit. It is random within a factor of two, so that
// nodes which failed together do not come back together.
func backoff(failed int, limit time.Duration) time.Duration {
	d := limit
	if failed < 20 {
		d = min(d, minBackoff<<(failed-1))
	}
	return d/2 + rand.N(d/2)
}

// A retry is due.
type retry struct{ name string }

// tell implements message. The versions are listed first: what failed may be
// incomplete again, or gone.
func (r retry) tell(d *db) {
	if f := d.facts[r.name]; f != nil {
		f.retries.planned = false
	}
	d.due = append(d.due, r.name)
	d.startListing(true)
}
