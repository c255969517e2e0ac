package node

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"sequins/internal/content"
	"sequins/internal/sleep"
	"sequins/load"
	"sequins/load/loadproc"
	"sequins/store"
	"sequins/version"
)

// faultyPause is the pause between attempts for a version that is itself faulty, unless its files change.
const faultyPause = time.Hour

// retries are the failed attempts for an input.
type retries struct {
	failed  int       // consecutive failures
	last    time.Time // time of the last failure
	outcome string    // of that, see load.Outcome
	next    time.Time // time of the next attempt
	timer   timer     // for that
	// needs is how many bytes of the disk another attempt needs, as far as failed ones have shown; short: the last one failed for lack of them.
	needs int64
	short bool
}

// lastReason returns the reason of the last failure of v, which was old before it failed again. It is that of v if both failures are the same fault,
// although another of the files may have failed first, and "" if its files have changed in between.
func (lo *loads) lastReason(old, v version.Entry) string {
	f := lo.db.records[v.Input]
	outcome := load.Outcome(f.err)
	switch {
	case f.retries.failed == 0:
		return ""
	case old.Failure.Reason != "" && outcome == f.retries.outcome && outcome != "other":
		return v.Failure.Reason
	}
	return old.Failure.Reason
}

// retryLater schedules a retry for each version that has just failed.
func (lo *loads) retryLater(before version.Facts) {
	for _, v := range lo.db.facts.Entries {
		old, _ := before.Entry(v.Input)
		if v.Failure.Waits && !old.Failure.Waits && v.Removal == version.Staying {
			lo.planRetry(old, v)
			lo.lookFurther()
		}
	}
}

// lookFurther lists more versions if all listed versions that are newer than the current one have failed: an older one may be good.
func (lo *loads) lookFurther() {
	for _, in := range lo.db.facts.Listed {
		if v, _ := lo.db.facts.Entry(in); in != lo.db.facts.Current && in.Name >= lo.db.facts.Current.Name && v.Failure.Reason == "" {
			return
		}
	}
	lo.db.lister.startListing(true)
}

// planRetry schedules a retry for v, which was old before it failed. The pauses grow, and start over if it was
// well for long before, but not because the attempt took long.
func (lo *loads) planRetry(old, v version.Entry) {
	f := lo.db.records[v.Input]
	r := &f.retries
	first, limit := minBackoff, maxBackoff
	isFaulty := v.Failure.Kind == version.Faulty
	if isFaulty {
		first, limit = faultyPause, faultyPause
	}
	if old.Failure.Reason == "" && time.Since(r.last) > 2*limit {
		r.failed = 0
	}
	r.failed++
	outcome, wait := load.Outcome(f.err), sleep.Backoff(r.failed, first, limit)
	i := slices.IndexFunc(lo.db.memory.state.Failures, func(before store.Failure) bool { return before.Input == v.Input && r.last.IsZero() && f.err == nil })
	if i >= 0 { // it has failed before the restart, and not in this process
		before := lo.db.memory.state.Failures[i]
		r.failed, outcome = max(r.failed, before.Attempts), before.Kind
		wait = max(0, min(sleep.Backoff(r.failed, first, limit), time.Until(before.Next)))
	}
	r.last, r.outcome, r.next = time.Now(), outcome, time.Now().Add(wait)
	level := slog.LevelInfo
	if r.failed > 1 {
		level = slog.LevelDebug
	}
	lo.db.log.Log(lo.db.bg.ctx, level, "a version that failed will be tried again", "version", v.Name, "in", wait.Round(time.Millisecond))
	kind := r.outcome
	if isFaulty {
		kind = faulty
	}
	lo.db.memory.keepFailure(v.Input, &store.Failure{Input: v.Input, Kind: kind, Reason: v.Failure.Reason, Attempts: r.failed, Next: r.next.UTC(), By: lo.db.memory.failsBy()})
	lo.db.memory.saveSoon()
	needs := r.needs
	if !r.short {
		needs = 0
	}
	r.timer.after(&lo.db.bg, r.next, func(ctx context.Context) { lo.pauseForRoom(ctx, v.Name, wait, needs) }, func() { lo.retry(v.Input) })
}

// roomPeriod is the interval at which the disk is looked at while a version waits for room on it.
const roomPeriod = 2 * time.Second

// pauseForRoom waits, but not longer than until the disk has room for the bytes that were lacking, if any were. The first tenth of the pause
// always passes, so that a disk whose free space goes up and down does not cause many attempts.
func (lo *loads) pauseForRoom(ctx context.Context, name string, wait time.Duration, needs int64) {
	if needs == 0 {
		_ = sleep.For(ctx, wait)
		return
	}
	end, first := time.Now().Add(wait), min(wait, max(roomPeriod, wait/10))
	for pause := first; pause > 0 && sleep.For(ctx, pause) == nil; pause = min(roomPeriod, time.Until(end)) {
		if lo.db.node.o.Loads.HasRoom(needs) {
			lo.db.log.Info("there is room on the disk again; the version is tried again", "version", name)
			return
		}
	}
}

// retry tries a version again. It lists the versions first, because the failed one may be incomplete or gone.
func (lo *loads) retry(in content.Input) {
	lo.db.lister.due = append(lo.db.lister.due, in)
	lo.db.lister.startListing(true)
}

// retryAll retries all versions that have failed: the configuration may have been the reason.
func (lo *loads) retryAll() {
	for _, v := range lo.db.facts.Entries {
		if v.Failure.Waits {
			lo.db.lister.due = append(lo.db.lister.due, v.Input)
		}
	}
	if len(lo.db.lister.due) > 0 {
		lo.db.lister.startListing(true)
	}
}

// room returns what is known of the disk space for a load of the missing ones of some partitions.
func (lo *loads) room(l *live, want []int) loadproc.Room {
	r := loadproc.Room{Want: want, Held: l.v.Held(), Least: lo.db.records[l.in()].retries.needs}
	if served := lo.db.keeper.live[lo.db.facts.Current]; served != nil {
		_, r.Blocks = served.size()
		r.Source = served.manifest.SourceOf(served.v.Held())
	}
	r.Removable = lo.db.facts.Removable(l.in())
	return r
}

// noteRoom remembers what a load that has ended with err has shown of the room that the version needs. If the disk was too small for it,
// the blocks that it has made are removed, too, unless the version is served or was: the room is for versions that fit.
func (lo *loads) noteRoom(in content.Input, err error) {
	r := &lo.db.records[in].retries
	var room *loadproc.RoomError
	switch r.short = errors.As(err, &room); {
	case r.short:
		r.needs = room.Needs
	case err == nil:
		r.needs = 0
	}
	l := lo.db.keeper.live[in]
	if !r.short || room.Written == 0 || l == nil || lo.db.facts.WasServed(in) {
		return
	}
	lo.db.keeper.openBlocks(l)
	l.Withdraw()
	for p, open := range l.open {
		if open {
			lo.db.keeper.drop(l, p)
		}
	}
}
