package node

import (
	"context"
	"slices"
	"time"

	"sequins/internal/content"
	"sequins/node/turns"
	"sequins/version"
)

// turnPeriod is the first interval at which waitForTurn looks whether other nodes hold the version.
const turnPeriod = 10 * time.Second

// waitForTurn waits for the load's turn. If other nodes hold the version meanwhile, its manifest is taken from them without
// one, so that this node can switch to it together with them, and read it from them.
func (lo *loads) waitForTurn(ctx context.Context, in content.Input, l *loading) error {
	lo.setStage(l, waitingForTurn)
	for period := turnPeriod; ; period = min(2*period, maxBackoff) {
		select {
		case <-l.turn.Granted():
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(period):
		}
		if l.known == nil && l.following.Replicas(0) > 0 {
			if m := lo.db.manifestElsewhere(ctx, l.following, in); m != nil {
				l.known = m
				lo.db.bg.send(func() {
					if l == lo.running[in] && lo.db.live[in] == nil {
						_ = lo.enter(in, *m) // the load will fail of an error
					}
				})
			}
		}
		lo.setStage(l, waitingForTurn) // other nodes may have what hasBegun looks for
	}
}

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
