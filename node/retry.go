package node

import (
	"log/slog"
	"slices"
	"time"

	"sequins/internal/sleep"
	"sequins/load"
	"sequins/store"
	"sequins/version"
)

// faultyPause is the pause between attempts for a version that is itself faulty, unless its files change.
const faultyPause = time.Hour

// retryLater schedules a retry for each version that has just failed.
func (ls *lister) retryLater(before version.Facts) {
	for _, v := range ls.db.facts.Entries {
		old, _ := before.Entry(v.Input)
		if v.Failure.Waits && !old.Failure.Waits && v.Removal == version.Staying {
			ls.planRetry(old, v)
			ls.startListing(true) // an older version may be good that has not been listed
		}
	}
}

// planRetry schedules a retry for v, which was old before it failed. The pauses grow, and start over if it was
// well for long before, but not because the attempt took long.
func (ls *lister) planRetry(old, v version.Entry) {
	f := ls.db.records[v.Input]
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
	i := slices.IndexFunc(ls.memory.state.Failures, func(before store.Failure) bool { return before.Input == v.Input && r.last.IsZero() && f.err == nil })
	if i >= 0 { // it has failed before the restart, and not in this process
		before := ls.memory.state.Failures[i]
		r.failed, outcome = max(r.failed, before.Attempts), before.Kind
		wait = max(0, min(sleep.Backoff(r.failed, first, limit), time.Until(before.Next)))
	}
	r.last, r.next = time.Now(), time.Now().Add(wait)
	level := slog.LevelInfo
	if r.failed > 1 {
		level = slog.LevelDebug
	}
	ls.db.log.Log(ls.db.bg.ctx, level, "a version that failed will be tried again", "version", v.Name, "in", wait.Round(time.Millisecond))
	if isFaulty {
		outcome = faulty
	}
	ls.memory.keepFailure(v.Input, &store.Failure{Input: v.Input, Kind: outcome, Reason: v.Failure.Reason, Attempts: r.failed, Next: r.next.UTC(), By: ls.memory.failsBy()})
	ls.memory.saveSoon()
	r.timer.set(&ls.db.bg, r.next, func() { ls.startListing(true) }) // it may be incomplete or gone
}

// retryAll retries all versions that have failed: the configuration may have been the reason.
func (ls *lister) retryAll() {
	for _, v := range ls.db.facts.Entries {
		if v.Failure.Waits {
			ls.db.records[v.Input].retries.next = time.Now()
			ls.startListing(true)
		}
	}
}
