package node

import (
	"context"
	"time"

	"sequins/internal/content"
	"sequins/internal/sleep"
	"sequins/version"
)

// The limits of a retirement, as multiples of linger. Requests prolong it, but a peer that does not leave the version must not keep it forever.
// Without a peer secret anybody can send such requests, so the limit is lower.
const (
	maxLingers         = 2
	maxLingersOfSecret = 24
)

// retire waits until a version has had no request for long enough.
func (k *keeper) retire(in content.Input) {
	k.db.set.Retire(in)
	l, began := k.live[in], time.Now()
	wait := func(ctx context.Context) {
		for wait := k.linger(); wait > 0 && sleep.For(ctx, wait) == nil; {
			wait = min(k.linger()-l.v.Idle(), k.maxLinger()-time.Since(began))
		}
	}
	l.retirement.after(&k.db.bg, began.Add(k.linger()), wait, func() {
		k.db.facts.HasIdled(in)
		k.db.decide()
	})
}

// revive ends the retirement of a version.
func (k *keeper) revive(in content.Input) {
	k.db.set.Revive(in)
	k.live[in].retirement.stop()
}

func (k *keeper) maxLinger() time.Duration {
	if k.db.node.o.Server.PeerSecret == "" {
		return maxLingers * k.linger()
	}
	return maxLingersOfSecret * k.linger()
}

func (k *keeper) linger() time.Duration {
	return k.db.node.o.Cluster.Linger(k.db.node.reloadable.Load().VersionRemoveTimeout)
}

// startClosing removes a version from the set, and closes it after its last reader.
func (k *keeper) startClosing(in content.Input) {
	v := k.db.set.Remove(in)
	k.live[in].retirement.stop()
	k.live[in].Withdraw()
	delete(k.live, in)
	k.closeLater(v, func() { k.db.bg.send(func() { k.closed(in) }) })
}

// closed records that the last reader of a version that is removed has released it.
func (k *keeper) closed(in content.Input) {
	k.db.facts.HasClosed(in)
	k.db.decide()
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
