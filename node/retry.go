package node

import (
	"log/slog"
	"time"

	"sequins/internal/sleep"
	"sequins/load"
	"sequins/version"
)

// retryLater schedules a retry for each version that has just failed.
func (ls *lister) retryLater(before version.Facts) {
	for _, v := range ls.db.facts.Entries {
		old, _ := before.Entry(v.Input)
		if v.Failure.Waits && !old.Failure.Waits && v.Removal == version.Staying {
			ls.planRetry(old, v)
			ls.want(repetition) // an older version may be good that has not been listed
		}
	}
}

// planRetry schedules a retry for v, which was old before it failed. The pauses grow, and start over if it was
// well for long before, but not because the attempt took long. What failed before a restart keeps its time.
func (ls *lister) planRetry(old, v version.Entry) {
	r, f := ls.db.records[v.Input], ls.memory.failure(v.Input)
	if !pausing(f) {
		first, limit := minBackoff, maxBackoff
		f.Kind, f.Reason, f.By = load.Outcome(r.err), v.Failure.Reason, ls.memory.failsBy()
		if v.Failure.Kind == version.Faulty {
			first, limit, f.Kind = faultyPause, faultyPause, faulty
		}
		if old.Failure.Reason == "" && time.Since(f.Next) > limit {
			f.Attempts = 0
		}
		f.Attempts++
		wait, level := sleep.Backoff(f.Attempts, first, limit), slog.LevelInfo
		if f.Attempts > 1 {
			level = slog.LevelDebug
		}
		ls.db.log.Log(ls.db.bg.ctx, level, "a version that failed will be tried again", "version", v.Name, "in", wait.Round(time.Millisecond))
		f.Next = time.Now().Add(wait).UTC()
		ls.memory.keepFailure(f)
		ls.memory.saveSoon()
	}
	r.retry = time.Now().Add(time.Until(f.Next)) // whatever becomes of the clock of the day
}

// retryAll retries all versions that have failed: the configuration may have been the reason.
func (ls *lister) retryAll() {
	for _, v := range ls.db.facts.Entries {
		if v.Failure.Waits {
			f := ls.memory.failure(v.Input)
			f.Next = time.Now()
			ls.memory.keepFailure(f)
			ls.db.records[v.Input].retry = f.Next
			ls.want(repetition)
		}
	}
}
