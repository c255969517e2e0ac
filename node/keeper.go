package node

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"time"

	"sequins/internal/content"
	"sequins/store"
	"sequins/version"
)

// look takes what there is of all versions in the set, and the verdicts on them, into the facts, the active one first.
func (k *keeper) look() {
	k.db.facts.Waiting = k.db.facts.Waiting && !k.db.bg.isDue(k.settled)
	if l := k.db.live[k.db.facts.Current]; l != nil {
		k.see(l)
	}
	for in, l := range k.db.live {
		if in != k.db.facts.Current {
			k.see(l)
		}
		k.withdrawDamaged(l)
		k.releaseSurplus(l)
		if renewed := l.v.Renew(); renewed != nil {
			l.v = renewed
			k.closeLater(k.db.set.Prepare(renewed), func() {})
		}
		k.endRetirement(l)
	}
	k.seenWhole = k.seenWhole || k.db.isWhole()
}

// see takes what there is of a version, and the verdict on it, into the facts.
func (k *keeper) see(l *live) {
	held, refuted := l.v.Held(), k.db.isRefuted(l)
	verdict := k.judge.judge(l, held)
	complete := !slices.ContainsFunc(l.Owned(len(held)), func(p int) bool { return !held[p] })
	coverage := version.Empty
	switch {
	case !refuted && k.replicated(l.Following, held):
		coverage = version.Replicated
	case !refuted && version.IsWhole(l.Following, held):
		coverage = version.Whole
	case version.IsReadable(l.Following, held):
		coverage = version.Partial
	}
	in := l.in()
	k.db.facts.See(in, coverage, complete && !refuted, verdicts[verdict.State])
	switch waits := complete && (coverage < version.Replicated || verdict.State == store.Pending); {
	case !waits:
		l.stall = time.Time{}
	case l.stall.IsZero():
		l.stall = time.Now().Add(stallTimeout)
	}
	if k.db.bg.isDue(l.stall) {
		k.db.facts.Stall(in)
	}
}

// stallTimeout is how long a version that is complete here waits for other nodes before an older one is loaded, too, if nothing is served.
const stallTimeout = time.Minute

var verdicts = map[string]version.Verdict{store.Pending: version.Unjudged, store.Passed: version.Passed, store.Held: version.Held}

// replicated reports whether the cluster holds enough of a version to switch to it.
func (k *keeper) replicated(f version.Following, held []bool) bool {
	return len(version.Missing(f, held, k.db.node.o.MinReplication)) == 0
}

// open adds a version to the set if it can be read without a load: because there are local blocks, or because other nodes hold it. ctx limits
// the questions to other nodes.
func (k *keeper) open(ctx context.Context, in content.Input) {
	f := k.db.node.o.Cluster.Follow(ctx, k.db.name, in)
	k.db.records[in].following = f
	l, err := k.openLive(ctx, in, f)
	if err != nil {
		k.db.log.Warn("version cannot be opened; it will be loaded again", "version", in.Name, "error", err)
	}
	k.db.facts.Opened(in, l != nil)
	if l == nil {
		return
	}
	k.insert(l)
	k.db.records[in].created = l.manifest.Created
	k.db.log.Info("version opened", "version", in.Name, "partitions", len(l.open))
}

// insert adds a version to the set, replacing one of the same input.
func (k *keeper) insert(l *live) {
	if old := k.db.set.Prepare(l.v); old != nil {
		l.Withdraw()
		k.closeLater(old, func() {})
	}
	l.SetDivision(l.content().Division, len(l.open))
	k.db.live[l.in()] = l
	if k.db.node.joined.Load() {
		l.advertiseOpen()
	}
}

// openLive returns a version that can be read without a load, nil if there is none: it has local blocks, or other nodes hold every partition or, if the
// manifest is in the store, at least one, or did before ZooKeeper was lost.
func (k *keeper) openLive(ctx context.Context, in content.Input, f version.Following) (*live, error) {
	var m store.Manifest
	dir, err := k.db.node.o.Store.Dir(k.db.name, in)
	stored := err == nil
	if stored {
		m = dir.Manifest()
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	} else if found := k.db.manifestElsewhere(ctx, f, func(c content.Content) bool { return c.Input == in }); found != nil {
		m = *found
	} else {
		return nil, nil
	}
	l, err := newLive(k.db.name, m, f)
	if err != nil || stored && k.openBlocks(l) {
		return l, err
	}
	l.SetDivision(l.content().Division, len(l.open))
	held := l.v.Held()
	if k.replicated(f, held) || stored && (version.IsReadable(f, held) || version.IsWhole(f, held)) {
		return l, nil
	}
	return nil, nil
}
