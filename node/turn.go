package node

import (
	"context"
	"slices"
	"time"

	"sequins/shard"
	"sequins/store"
	"sequins/turns"
	"sequins/version"
)

const (
	// turnPeriod is the first interval at which waitForTurn looks whether other nodes hold the version.
	turnPeriod = 10 * time.Second
	// maxPlanning limits an early plan, which takes one of few places. The first attempts have less
	// time, because the source may hang.
	maxPlanning = 10 * time.Minute
)

// waitForTurn waits for the load's turn. If other nodes hold the version meanwhile, it is planned without
// one, so that this node can switch to it together with them, and read it from them.
func (d *db) waitForTurn(ctx context.Context, name string, l *loading) error {
	d.send(inTurn{l})
	early, cancel := context.WithCancel(ctx)
	defer cancel()
	timer := time.NewTimer(turnPeriod)
	defer timer.Stop()
	for period, limit := turnPeriod, startTimeout; ; {
		select {
		case <-l.turn.Granted():
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
		}
		if l.following.Replicas(0) > 0 {
			within := limit // not limit, which changes
			d.work(func() message { return d.planEarly(early, name, l, within) })
			period, limit = min(2*period, maxBackoff), min(2*limit, maxPlanning)
		}
		d.send(inTurn{l})
		timer.Reset(period)
	}
}

// planEarly plans a version that waits for its turn within a limit, unless that was done before.
func (d *db) planEarly(ctx context.Context, name string, l *loading, limit time.Duration) message {
	if !l.early.CompareAndSwap(false, true) {
		return plannedEarly{name: name}
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	m, err := d.plan(ctx, name, l.following, l.pinned)
	l.early.Store(err == nil)
	return plannedEarly{name, l, m, err == nil}
}

// plannedEarly reports the plan of a version that waits for its turn to be loaded, if there is one.
type plannedEarly struct {
	name     string
	loading  *loading
	manifest store.Manifest
	planned  bool
}

// tell implements message.
func (p plannedEarly) tell(d *db) {
	l := p.loading
	if !p.planned || l != d.loads[p.name] || d.live[p.name] != nil {
		return
	}
	partitioner, err := shard.ParsePartitioner(p.manifest.Partitioner)
	if err != nil {
		return // the load will fail of it
	}
	l.manifest, l.partitioner = p.manifest, partitioner
	d.handle(version.Planned{Version: p.name})
}

// inTurn reports that a load waits for its turn, still waits for it, or has it.
type inTurn struct{ l *loading }

// tell implements message. The loop of the db calls setTerms after it.
func (t inTurn) tell(*db) { t.l.inTurn = true }

// setTerms tells the queue when the loads of d may begin, which every event can change.
func (d *db) setTerms() {
	now := time.Now()
	for name, l := range d.loads {
		if !l.inTurn {
			continue
		}
		l.turn.Set(d.terms(name, l))
		reason := l.turn.Waits(now)
		if v, _ := d.state.Entry(name); v.Postponed == (reason != "") {
			continue
		}
		if reason != "" {
			d.log.Info("load postponed", "version", name, "reason", reason)
		}
		d.handle(version.Postponed{Version: name, Postponed: reason != ""})
	}
}

// terms returns when a load may begin. What has failed before comes after what has not. Urgent versions do not wait for the windows, nor do those of which
// a part is loaded.
func (d *db) terms(name string, l *loading) turns.Terms {
	var t turns.Terms
	if of := d.node.reloadable.Load().Turn; of != nil {
		t = of(d.name)
	}
	v, _ := d.state.Entry(name)
	t.Retry = v.Reason != "" && d.facts[name].retries.failed > 0
	if d.state.Urgent(name) || d.hasBegun(name, l.following) {
		t.Windows = turns.Windows{}
	}
	return t
}

// hasBegun reports whether some partition of a version is on another node, or, unless the version is
// faulty, on this one. The number of partitions is assumed to be that of what is served.
func (d *db) hasBegun(name string, f version.Following) bool {
	v, _ := d.state.Entry(name)
	if l := d.live[name]; l != nil && !v.Faulty && slices.Contains(l.v.Held(), true) {
		return true
	}
	partitions := 1
	if l := d.live[d.state.Floor()]; l != nil {
		partitions = l.v.Info().Partitions
	}
	return version.OnAnyNode(f, partitions)
}
