package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"time"

	"sequins/internal/content"
	"sequins/internal/sleep"
	"sequins/version"
)

// carryOut executes an action that the facts say is being carried out.
func (d *db) carryOut(a version.Action) {
	switch a.Op {
	case version.Open:
		d.open(a.Input)
	case version.Load:
		d.startLoad(a.Input)
	case version.Activate:
		d.activate(a.Input, a.Back)
	case version.Cancel:
		d.loads[a.Input].cancel()
	case version.Retire:
		d.retire(a.Input)
	case version.Revive:
		d.revive(a.Input)
	case version.Close:
		d.startClosing(a.Input)
	case version.Delete:
		d.work(func() message { return deleted{a.Input, d.node.o.Store.Remove(d.name, a.Input)} })
	case version.Forget: // see note
	}
}

func (d *db) activate(in content.Input, back bool) {
	old, activate := d.set.Current(), d.set.Activate
	if back {
		activate = d.set.GoBack
	}
	if err := activate(in); err != nil {
		d.log.Error("bug: version cannot be activated", "version", in.Name, "error", err)
		return
	}
	if v, _ := d.facts.Entry(in); v.Complete && d.loads[in] != nil {
		d.reportLoaded(in, d.loads[in])
	}
	l := d.live[in]
	l.Switched()
	d.report(l)
	d.checkSwitched(in.Name)
	d.keepManifest(l)
	f := d.records[in]
	f.activeAt = time.Now()
	after := f.activeAt.Sub(f.found)
	d.node.o.Metrics.Statsd.Active(d.name, in.Name, after)
	if old.Name == "" && in == d.servedBefore {
		d.log.Info("version active", "version", in.Name)
		return
	}
	d.events.Active(in.Name, old.Name, after)
	if back {
		d.events.RolledBack(in.Name, old.Name, cmp.Or(d.pin.Reasons[old.Name], d.pin.Reasons[in.Name]))
	}
}

// keepManifest stores the manifest of a content that only other nodes hold, so that it can be served after
// a restart, even without the source.
func (d *db) keepManifest(l *live) {
	_, err := d.node.o.Store.Dir(d.name, l.in())
	if errors.Is(err, fs.ErrNotExist) {
		m := l.manifest
		m.Created = time.Now()
		_, err = d.node.o.Store.Create(d.name, m)
	}
	if err != nil {
		d.log.Error("the manifest of a version cannot be stored; a restart needs the source or another node for it", "version", l.in().Name, "error", err)
	}
}

// damaged has a damaged block loaded again: at once the first time, otherwise after a retry, so that a faulty disk does not cause constant reads
// from the source. A version that is being removed is loaded again only if it is needed after all.
func (d *db) damaged(in content.Input, partition int) {
	v, _ := d.facts.Entry(in)
	if d.live[in] == nil || v.Removal > version.Lingering {
		return
	}
	d.setAside(in, partition)
	if r := d.records[in]; v.Removal == version.Staying && slices.Contains(r.reloaded, partition) {
		d.facts.Fail(in, version.Failure{Reason: fmt.Sprintf("the block of partition %d was damaged again after it had been loaded again", partition)})
	} else if v.Removal == version.Staying {
		r.reloaded = append(r.reloaded, partition)
	}
	d.decide()
}

// setAside marks a block for replacement by the next load. If the file cannot be moved, that load finds
// it again, and ends with the partition missing. A load that runs is followed by another one.
func (d *db) setAside(in content.Input, partition int) {
	l := d.live[in]
	log := d.log.With("version", in.Name, "partition", partition)
	dir, err := d.node.o.Store.Dir(d.name, in)
	if err == nil {
		err = dir.SetAside(partition)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Error("a damaged block cannot be set aside", "error", err)
	} else {
		l.forget(partition)
	}
	l.v.SetDamaged(partition)
	l.damaged[partition] = false
	d.withdrawDamaged(l)
	if running := d.loads[in]; running != nil {
		running.outdated = true
	}
	d.see(l)
}

// withdrawDamaged withdraws partitions whose block is damaged, so that a damaged block does not count as a replica and
// other nodes do not give up good ones for it. A partition that no other node holds is advertised: what can still be
// read of it, others can only read here.
func (d *db) withdrawDamaged(l *live) {
	for p, withdrawn := range l.damaged {
		switch held := l.Replicas(p) > 0; {
		case held && !withdrawn:
			l.damaged[p] = true
			l.Withdraw(p)
		case !held && withdrawn && !l.returning:
			l.returning = true
			d.tellAfter(minBackoff+rand.N(maxReturn), returning{l}) // so that of two nodes with damaged blocks one returns first
		}
	}
}

// maxReturn limits the pause before damaged partitions are advertised again.
const maxReturn = 5 * time.Second

// returning says that damaged partitions of a version may be advertised again.
type returning struct{ l *live }

// tell implements message.
func (r returning) tell(d *db) {
	r.l.returning = false
	if d.live[r.l.in()] != r.l {
		return
	}
	for p, withdrawn := range r.l.damaged {
		if withdrawn && r.l.Replicas(p) == 0 {
			r.l.damaged[p] = false
			r.l.Advertise(p)
		}
	}
}

// A retirement is the wait for the last requests of a retired version.
type retirement struct {
	in     content.Input
	cancel context.CancelFunc
}

// tell implements message. It ends the wait.
func (r *retirement) tell(d *db) {
	if l := d.live[r.in]; l != nil && l.retirement == r {
		d.facts.HasIdled(r.in)
		d.decide()
	}
}

// retire waits until a version has had no request for long enough.
func (d *db) retire(in content.Input) {
	d.set.Retire(in)
	l, began := d.live[in], time.Now()
	ctx, cancel := context.WithCancel(d.ctx)
	l.retirement = &retirement{in, cancel}
	r, v := l.retirement, l.v
	d.work(func() message {
		defer cancel()
		for {
			wait := min(d.linger()-v.Idle(), d.maxLinger()-time.Since(began))
			if wait <= 0 || sleep.For(ctx, wait) != nil {
				return r
			}
		}
	})
}

// revive ends the retirement of a version.
func (d *db) revive(in content.Input) {
	d.set.Revive(in)
	l := d.live[in]
	l.retirement.cancel()
	l.retirement = nil
}

// The limits of a retirement, as multiples of linger. Requests prolong it, but a peer that does not
// leave the version must not keep it forever. Without a peer secret anybody can send such requests, so
// the limit is lower.
const (
	maxLingers         = 2
	maxLingersOfSecret = 24
)

func (d *db) maxLinger() time.Duration {
	if d.node.o.Server.PeerSecret == "" {
		return maxLingers * d.linger()
	}
	return maxLingersOfSecret * d.linger()
}

func (d *db) linger() time.Duration {
	return d.node.o.Cluster.Linger(d.node.reloadable.Load().VersionRemoveTimeout)
}

// startClosing removes a version from the set, and closes it after its last reader.
func (d *db) startClosing(in content.Input) {
	v := d.set.Remove(in)
	d.live[in].Withdraw()
	delete(d.live, in)
	d.closeLater(v, func() { d.send(closed{in}) })
}

// closed reports that the last reader of a version that is removed has released it.
type closed struct{ in content.Input }

// tell implements message.
func (m closed) tell(d *db) {
	d.facts.HasClosed(m.in)
	d.decide()
}

// closeLater closes a version that is not in the set, and then calls done. Readers may take as long as
// they need; the server cuts them off at shutdown.
func (d *db) closeLater(v *version.Version, done func()) {
	d.closing.Go(func() {
		if err := v.Close(d.node.patience); err != nil {
			d.log.Warn("closing a version", "version", v.Info().Name, "error", err)
		}
		done()
	})
}

// deleted reports that the files of a version were deleted, or could not be.
type deleted struct {
	in  content.Input
	err error
}

// tell implements message.
func (m deleted) tell(d *db) {
	reason := ""
	if m.err != nil && !errors.Is(m.err, fs.ErrNotExist) {
		reason = m.err.Error()
	}
	d.facts.Deleted(m.in, reason)
	d.decide()
}
