package node

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"sequins/discovery"
	"sequins/internal/human"
	"sequins/internal/sleep"
	"sequins/version"
)

// faultyPause is the pause between attempts for a version that is itself faulty, unless its files change.
const faultyPause = time.Hour

// retries are the failed attempts for a version since its files last changed.
type retries struct {
	input   discovery.Input    // its files, by the last listing before the last attempt; zero: not known
	failed  int                // consecutive failures
	last    time.Time          // time of the last failure
	outcome string             // of that, see load.Outcome
	next    time.Time          // time of the next attempt
	cancel  context.CancelFunc // cancels that; nil if none was scheduled
	// needs is how many bytes of the disk another attempt needs, as far as failed ones have shown; short: the last
	// one failed for lack of them.
	needs int64
	short bool
}

// String describes when the next attempt follows.
func (r *retries) String() string {
	return fmt.Sprintf("it has failed %s, and is tried again at %s or when its files change", human.Plural(r.failed, "time"), r.next.UTC().Format(time.TimeOnly+"Z"))
}

// stop cancels the scheduled attempt.
func (r *retries) stop() {
	if r.cancel != nil {
		r.cancel()
	}
}

// lastReason returns the reason of the last failure of v, which was old before it failed again. It is that of v if
// both failures are the same fault, although another of the files may have failed first, and "" if its files have
// changed in between.
func (d *db) lastReason(old, v version.Entry) string {
	f := d.facts[v.Name]
	switch {
	case f.retries.failed == 0:
		return ""
	case old.Reason != "" && f.outcome == f.retries.outcome && f.outcome != "other":
		return v.Reason
	}
	return old.Reason
}

// retryLater schedules a retry for each version that has just failed.
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

// planRetry schedules a retry for v, which was old before it failed. The pauses grow, and start over if it was
// well for long before, but not because the attempt took long.
func (d *db) planRetry(old, v version.Entry) {
	f := d.facts[v.Name]
	r := &f.retries
	first, limit := minBackoff, maxBackoff
	if v.Faulty {
		first, limit = faultyPause, faultyPause
	}
	if old.Reason == "" && time.Since(r.last) > 2*limit {
		r.failed = 0
	}
	r.failed++
	wait := sleep.Backoff(r.failed, first, limit)
	r.last, r.outcome, r.next = time.Now(), f.outcome, time.Now().Add(wait)
	level := slog.LevelInfo
	if r.failed > 1 {
		level = slog.LevelDebug
	}
	d.log.Log(d.ctx, level, "a version that failed will be tried again", "version", v.Name, "in", wait.Round(time.Millisecond))
	r.stop()
	ctx, cancel := context.WithCancel(d.ctx)
	r.cancel = cancel
	needs := r.needs
	if !r.short {
		needs = 0
	}
	d.work(func() message {
		d.pauseForRoom(ctx, v.Name, wait, needs)
		return retry{v.Name, ctx}
	})
}

// roomPeriod is the interval at which the disk is looked at while a version waits for room on it.
const roomPeriod = 2 * time.Second

// pauseForRoom waits, but not longer than until the disk has room for the bytes that were lacking, if any were. The first tenth of the pause
// always passes, so that a disk whose free space goes up and down does not cause many attempts.
func (d *db) pauseForRoom(ctx context.Context, name string, wait time.Duration, needs int64) {
	if needs == 0 {
		_ = sleep.For(ctx, wait) // its end is that of retry.ctx
		return
	}
	end, first := time.Now().Add(wait), min(wait, max(roomPeriod, wait/10))
	for pause := first; pause > 0 && sleep.For(ctx, pause) == nil; pause = min(roomPeriod, time.Until(end)) {
		if d.node.o.Loads.HasRoom(needs) {
			d.log.Info("there is room on the disk again; the version is tried again", "version", name)
			return
		}
	}
}

// A retry reports that a retry is due, unless ctx has ended.
type retry struct {
	name string
	ctx  context.Context //nolint:containedctx // it belongs to the message
}

// tell implements message. It lists the versions first, because the failed one may be incomplete or
// gone.
func (r retry) tell(d *db) {
	if r.ctx.Err() == nil {
		d.due = append(d.due, r.name)
		d.startListing(true)
	}
}

// retryChanged retries the failed versions whose files have changed, as if they had not been tried before.
func (d *db) retryChanged(l discovery.Listing) {
	for _, v := range d.state.Entries {
		now, looked := l.Inputs[version.Name(v.Name)]
		if !looked || !v.Failed || !slices.Contains(l.Versions, v.Name) {
			continue
		}
		r := &d.facts[v.Name].retries
		if known := r.input != (discovery.Input{}); known && r.input != now {
			d.log.Info("the files of a version that failed have changed; it is tried again", "version", v.Name)
			r.stop()
			*r = retries{}
			d.due = append(d.due, v.Name)
		}
		r.input = now
	}
}

// retryAll retries all versions that have failed: the configuration may have been the reason.
func (d *db) retryAll() {
	for _, v := range d.state.Entries {
		if v.Failed {
			d.due = append(d.due, v.Name)
		}
	}
	if len(d.due) > 0 {
		d.startListing(true)
	}
}
