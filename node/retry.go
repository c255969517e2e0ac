package node

import (
	"time"

	"sequins/internal/sleep"
	"sequins/loadproc"
	"sequins/version"
)

// maxFaultyBackoff limits the pauses between attempts for a version that is itself faulty. Reading it
// again is expensive and helps only if it was repaired.
const maxFaultyBackoff = time.Hour

// retries is the history of failed attempts for a version.
type retries struct {
	failed  int       // consecutive failures
	last    time.Time // time of the last failure
	planned bool      // a retry is scheduled
	// shortage is the room on the disk that the last attempt lacked; nil if it failed for another reason.
	shortage *loadproc.Shortage
}

// retryLater schedules a retry for each version that has just failed, with growing pauses, so that no
// refresh is needed.
func (d *db) retryLater(before version.State) {
	for _, v := range d.state.Entries {
		old, _ := before.Entry(v.Name)
		if v.Failed && !old.Failed && v.Exit == version.Staying {
			d.planRetry(old, v)
			d.lookFurther()
		}
	}
}

// lookFurther lists more versions if all listed versions that are newer than the current one have
// failed: an older one may be good.
func (d *db) lookFurther() {
	for _, name := range d.state.Listed {
		if v, _ := d.state.Entry(name); name > d.state.Current && v.Reason == "" {
			return
		}
	}
	d.startListing(true)
}

// planRetry schedules a retry for v, which was old before it failed. The pauses start over if it was
// well for long before, but not because the attempt took long.
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
		return // a refresh has retried it already
	}
	r.planned = true
	wait := sleep.Backoff(r.failed, minBackoff, limit)
	d.log.Info("a version that failed will be tried again", "version", v.Name, "in", wait.Round(time.Millisecond))
	shortage := r.shortage
	d.work(func() message {
		d.pauseForRoom(v.Name, wait, shortage)
		return retry{v.Name}
	})
}

// roomPeriod is the interval at which the disk is looked at while a version waits for room on it.
const roomPeriod = 2 * time.Second

// pauseForRoom waits, but not longer than until the disk has the room that was lacking. The first tenth of the pause always passes, so
// that a disk whose free space goes up and down does not cause many attempts.
func (d *db) pauseForRoom(name string, wait time.Duration, s *loadproc.Shortage) {
	if s == nil {
		d.pause(wait)
		return
	}
	end, first := time.Now().Add(wait), min(wait, max(roomPeriod, wait/10))
	for pause := first; pause > 0 && d.pause(pause); pause = min(roomPeriod, time.Until(end)) {
		if d.node.o.Loads.IsOver(s) {
			d.log.Info("there is room on the disk again; the version is tried again", "version", name)
			return
		}
	}
}

// A retry reports that a retry is due.
type retry struct{ name string }

// tell implements message. It lists the versions first, because the failed one may be incomplete or
// gone.
func (r retry) tell(d *db) {
	if f := d.facts[r.name]; f != nil {
		f.retries.planned = false
	}
	d.due = append(d.due, r.name)
	d.startListing(true)
}
