package node

import (
	"context"
	"slices"
	"time"

	"sequins/internal/content"
	"sequins/node/turns"
	"sequins/shard"
	"sequins/store"
	"sequins/version"
)

// turnPeriod is the first interval at which waitForTurn looks whether other nodes hold the version.
const turnPeriod = 10 * time.Second

// waitForTurn waits for the load's turn. If other nodes hold the version meanwhile, its manifest is taken from them without
// one, so that this node can switch to it together with them, and read it from them.
func (lo *loads) waitForTurn(ctx context.Context, in content.Input, l *loading) error {
	lo.db.bg.send(moved{})
	timer := time.NewTimer(turnPeriod)
	defer timer.Stop()
	for period := turnPeriod; ; period = min(2*period, maxBackoff) {
		select {
		case <-l.turn.Granted():
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
		}
		if l.known == nil && l.following.Replicas(0) > 0 {
			if l.known = lo.manifestElsewhere(ctx, l.following, in); l.known != nil {
				lo.db.bg.send(early{in, l, *l.known})
			}
		}
		lo.db.bg.send(moved{})
		timer.Reset(period)
	}
}

// early is the manifest of a version that waits for its turn to be loaded, from another node.
type early struct {
	in       content.Input
	loading  *loading
	manifest store.Manifest
}

// tell implements message.
func (e early) tell(d *db) {
	partitioner, err := shard.ParsePartitioner(e.manifest.Partitioner)
	if e.loading != d.loads.running[e.in] || d.keeper.live[e.in] != nil || err != nil { // the load will fail of an error
		return
	}
	e.loading.manifest, e.loading.partitioner = e.manifest, partitioner
	if d.facts.Planned(e.in, false) {
		d.loads.prepare(e.in)
	}
	d.decide()
}

// moved reports that a load waits for its turn, still waits for it, or has it.
type moved struct{}

// tell implements message. The loop of the db calls setTerms after it.
func (moved) tell(*db) {}

// setTerms tells the queue when the loads of d may begin, which every event can change.
func (lo *loads) setTerms() {
	now := time.Now()
	for in, l := range lo.running {
		switch l.stage.Load() {
		case starting:
			continue
		case waitingForTurn:
		default:
			lo.db.facts.Begin(in)
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
	var t turns.Terms
	if of := lo.db.node.reloadable.Load().Turn; of != nil {
		t = of(lo.db.name)
	}
	v, _ := lo.db.facts.Entry(in)
	t.Retry = v.Failure.Reason != "" && lo.db.records[in].retries.failed > 0
	if lo.db.facts.Urgent(in) || lo.hasBegun(in, l.following) {
		t.Windows = turns.Windows{}
	}
	return t
}

// hasBegun reports whether some partition of a version is on another node, or, unless the version is
// faulty, on this one. The number of partitions is assumed to be that of what is served.
func (lo *loads) hasBegun(in content.Input, f version.Following) bool {
	v, _ := lo.db.facts.Entry(in)
	if l := lo.db.keeper.live[in]; l != nil && v.Failure.Kind != version.Faulty && slices.Contains(l.v.Held(), true) {
		return true
	}
	partitions := 1
	if l := lo.db.keeper.live[lo.db.facts.Floor()]; l != nil {
		partitions = l.v.Info().Partitions
	}
	return version.OnAnyNode(f, partitions)
}
