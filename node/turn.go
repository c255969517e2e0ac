package node

import (
	"slices"
	"time"

	"sequins/internal/content"
	"sequins/node/turns"
	"sequins/version"
)

// setTerms tells the queue when the loads of d may begin, which every event can change.
func (lo *loads) setTerms() {
	now := time.Now()
	for in, l := range lo.running {
		if l.stage.Load() == starting {
			continue
		}
		l.turn.Set(lo.terms(in, l))
		reason := l.turn.Waits(now)
		if reason != "" && reason != l.postponed {
			lo.db.log.Info("load postponed", "version", in.Name, "reason", reason)
		}
		l.postponed = reason
	}
}

// terms returns when a load may begin. What has failed before comes after what has not. Urgent versions do not wait for the windows, nor do those of which
// a part is loaded.
func (lo *loads) terms(in content.Input, l *loading) turns.Terms {
	t := lo.db.options().Turn
	v, _ := lo.db.facts.Entry(in)
	t.Retry = v.Failure.Reason != ""
	if lo.db.facts.Urgent(in) || lo.hasBegun(in, l.following) {
		t.Windows = turns.Windows{}
	}
	return t
}

// hasBegun reports whether some partition of a version is on another node, or, unless the version is
// faulty, on this one. The number of partitions is assumed to be that of what is served.
func (lo *loads) hasBegun(in content.Input, f version.Following) bool {
	v, _ := lo.db.facts.Entry(in)
	if l := lo.db.live[in]; l != nil && v.Failure.Kind != version.Faulty && slices.Contains(l.v.Held(), true) {
		return true
	}
	partitions := 1
	if l := lo.db.live[lo.db.facts.Floor()]; l != nil {
		partitions = l.v.Info().Partitions
	}
	return isElsewhere(f, partitions)
}
