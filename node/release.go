package node

import (
	"maps"
	"slices"
	"time"

	"sequins/internal/content"
	"sequins/version"
)

// releaseSurplus releases partitions that other nodes have taken over. It withdraws them immediately. Nodes that have not seen the new replicas yet,
// because they are behind or have lost ZooKeeper, still ask this node, so the blocks stay readable for as long as a replaced version, and are deleted
// then. Partitions that are needed here again are advertised again.
func (k *keeper) releaseSurplus(l *live) {
	if k.db.isLoading(l.in()) {
		return
	}
	surplus := l.Surplus(l.v.Held())
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
			l.released[p] = time.Now()
			fresh = append(fresh, p)
		}
	}
	if len(fresh) > 0 {
		l.Withdraw(fresh...)
		k.db.log.Info("partitions given up: other nodes have taken them over", "version", l.in().Name, "partitions", fresh,
			"readable_for", k.linger())
	}
	for _, p := range slices.Sorted(maps.Keys(l.released)) {
		if k.db.bg.isDue(l.released[p].Add(k.linger())) {
			k.drop(l, p)
		}
	}
}

// The limits of a retirement, as multiples of linger. Requests prolong it, but a peer that does not leave the version must not keep it forever.
// Without a peer secret anybody can send such requests, so the limit is lower.
const (
	maxLingers         = 2
	maxLingersOfSecret = 24
)

// endRetirement ends the retirement of a version that has had no request for long enough.
func (k *keeper) endRetirement(l *live) {
	if v, _ := k.db.facts.Entry(l.in()); v.Removal != version.Lingering {
		return
	}
	linger, lingers := k.linger(), maxLingers
	if k.db.node.o.Server.PeerSecret != "" {
		lingers = maxLingersOfSecret
	}
	left := min(linger-l.v.Idle(), time.Duration(lingers)*linger-time.Since(l.retired))
	if k.db.bg.isDue(time.Now().Add(left)) {
		k.db.facts.HasIdled(l.in())
	}
}

// linger returns how long a replaced version stays after the last request for it. Other nodes, if there are any, learn of the switch later.
func (k *keeper) linger() time.Duration {
	if k.db.node.alone() {
		return 0
	}
	return max(time.Second, k.db.node.reloadable.Load().VersionRemoveTimeout)
}

// startClosing removes a version from the set, and closes it after its last reader.
func (k *keeper) startClosing(in content.Input) {
	v := k.db.set.Remove(in)
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
			k.db.log.Warn("closing a version", "version", v.Name, "error", err)
		}
		done()
	})
}
