package node

import (
	"context"
	"maps"
	"slices"
	"time"

	"sequins/internal/content"
	"sequins/internal/sleep"
	"sequins/version"
)

// releaseSurplus releases partitions that other nodes have taken over. It withdraws them immediately. Nodes that have not seen the new replicas yet,
// because they are behind or have lost ZooKeeper, still ask this node, so the blocks stay readable for as long as a replaced version, and are deleted
// then. Partitions that are needed here again are advertised again.
func (k *keeper) releaseSurplus(l *live) {
	if k.db.isLoading(l.in()) {
		return
	}
	now, surplus := time.Now(), l.Surplus(l.v.Held())
	for p := range l.released {
		if !slices.Contains(surplus, p) {
			delete(l.released, p)
			if l.open[p] {
				l.Advertise(p)
			}
		}
	}
	var fresh []int
	for _, p := range surplus {
		if l.released[p].IsZero() {
			l.released[p] = now
			fresh = append(fresh, p)
		}
	}
	if len(fresh) > 0 {
		l.Withdraw(fresh...)
		k.db.log.Info("partitions given up: other nodes have taken them over", "version", l.in().Name, "partitions", fresh,
			"readable_for", k.linger())
	}
	next := time.Duration(-1) // until the time of the first of the others is over
	for _, p := range slices.Sorted(maps.Keys(l.released)) {
		if left := l.released[p].Add(k.linger()).Sub(now); left <= 0 {
			k.drop(l, p)
		} else if next < 0 || left < next {
			next = left
		}
	}
	if next < 0 || !l.release.due.IsZero() {
		return
	}
	l.release.set(&k.db.bg, now.Add(next), func() {})
}

// The limits of a retirement, as multiples of linger. Requests prolong it, but a peer that does not leave the version must not keep it forever.
// Without a peer secret anybody can send such requests, so the limit is lower.
const (
	maxLingers         = 2
	maxLingersOfSecret = 24
)

// retire waits until a version has had no request for long enough.
func (k *keeper) retire(in content.Input) {
	l, began := k.db.live[in], time.Now()
	l.v.Retire()
	lingers := maxLingers
	if k.db.node.o.Server.PeerSecret != "" {
		lingers = maxLingersOfSecret
	}
	wait := func(ctx context.Context) {
		for wait := k.linger(); wait > 0 && sleep.For(ctx, wait) == nil; {
			wait = min(k.linger()-l.v.Idle(), time.Duration(lingers)*k.linger()-time.Since(began))
		}
	}
	l.retirement.after(&k.db.bg, began.Add(k.linger()), wait, func() { k.db.facts.HasIdled(in) })
}

func (k *keeper) linger() time.Duration {
	return k.db.node.o.Cluster.Linger(k.db.node.reloadable.Load().VersionRemoveTimeout)
}

// startClosing removes a version from the set, and closes it after its last reader.
func (k *keeper) startClosing(in content.Input) {
	v := k.db.set.Remove(in)
	k.db.live[in].retirement.stop()
	k.db.live[in].stall.stop()
	k.db.live[in].Withdraw()
	delete(k.db.live, in)
	k.closeLater(v, func() {
		k.db.bg.send(func() { k.db.facts.HasClosed(in) })
	})
}

// closeLater closes a version that is not in the set, and then calls done. Readers may take as long as
// they need; the server cuts them off at shutdown.
func (k *keeper) closeLater(v *version.Version, done func()) {
	k.db.bg.closing.Go(func() {
		if err := v.Close(k.db.node.patience); err != nil {
			k.db.log.Warn("closing a version", "version", v.Info().Name, "error", err)
		}
		done()
	})
}
