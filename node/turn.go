package node

import (
	"slices"
	"time"

	"sequins/internal/content"
	"sequins/node/turns"
	"sequins/version"
)

// setTerms tells the queue when the loads of d may begin, which every event can change, and what the others wait for.
func (lo *loads) setTerms() {
	for in, l := range lo.running {
		before := l.postponed
		if l.postponed = ""; l.stage.Load() != waitingForTurn {
			continue
		}
		terms := lo.terms(in, l)
		l.turn.Set(terms)
		now := time.Now()
		if lo.db.bg.isDue(terms.Windows.Next(now)) {
			continue
		}
		if l.postponed = terms.Windows.Waits(now); l.postponed != before {
			lo.db.log.Info("load postponed", "version", in.Name, "reason", l.postponed)
		}
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
		partitions = l.v.Partitions
	}
	return isElsewhere(f, partitions)
}
