package node

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"sequins/internal/sleep"
	"sequins/version"
)

// carryOut does what the state machine says. It returns the answer if there is
// one at once.
func (d *db) carryOut(a version.Action) version.Event {
	switch a.Op {
	case version.Open:
		return d.open(a.Version)
	case version.Load:
		d.startLoad(a.Version)
	case version.Prepare:
		return d.prepare(a.Version)
	case version.Activate:
		d.activate(a.Version)
	case version.SetAside:
		return d.setAside(a.Version, a.Partition)
	case version.Cancel:
		d.loads[a.Version].cancel()
	case version.Retire:
		d.retire(a.Version)
	case version.Revive:
		d.revive(a.Version)
	case version.Close:
		d.startClosing(a.Version)
	case version.Delete:
		d.work(func() message { return d.delete(a.Version) })
	}
	return nil
}

// An outcome is the event that some work has ended with.
type outcome struct{ event version.Event }

// tell implements message.
func (o outcome) tell(d *db) { d.handle(o.event) }

func (d *db) activate(name string) {
	old := d.set.Current()
	if err := d.set.Activate(name); err != nil {
		d.log.Error("bug: version cannot be activated", "version", name, "error", err)
		return
	}
	d.node.o.Cluster.Switched(d.name, name)
	d.keepManifest(name)
	f := d.facts[name]
	f.activeAt = time.Now()
	after := f.activeAt.Sub(f.found)
	d.node.o.Metrics.Statsd.Active(d.name, version.Name(name), after)
	attrs := []any{"version", name, "after", after.Round(time.Millisecond)}
	if old != "" {
		attrs = append(attrs, "instead_of", old)
	}
	d.log.Info("version active", attrs...)
}

// keepManifest keeps the plan of a version that is answered from other nodes
// alone, so that a restart can do so, too, without the source.
func (d *db) keepManifest(name string) {
	_, err := d.node.o.Store.Dir(d.name, name)
	if errors.Is(err, fs.ErrNotExist) {
		m := d.live[name].manifest
		m.Created = time.Now()
		_, err = d.node.o.Store.Create(d.name, name, m)
	}
	if err != nil {
		d.log.Error("the plan of a version cannot be kept; a restart needs the source for it", "version", name, "error", err)
	}
}

// setAside has the next load replace a block. A file that cannot be moved away
// will be found again by that load, which then ends with the partition missing.
func (d *db) setAside(name string, partition int) version.Event {
	l := d.live[name]
	log := d.log.With("version", name, "partition", partition)
	dir, err := d.node.o.Store.Dir(d.name, name)
	if err == nil {
		err = dir.SetAside(partition)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Error("a damaged block cannot be set aside", "error", err)
	} else {
		l.forget(partition)
	}
	l.v.SetDamaged(partition)
	return d.seen(l)
}

// A retirement is the wait for the end of requests for a version that was retired.
type retirement struct {
	name   string
	cancel context.CancelFunc
}

// tell implements message. The wait is over.
func (r *retirement) tell(d *db) {
	if l := d.live[r.name]; l != nil && l.retirement == r {
		d.handle(version.Idle{Version: r.name})
	}
}

// retire waits until nobody has asked for a version for long enough.
func (d *db) retire(name string) {
	d.set.Retire(name)
	l, began := d.live[name], time.Now()
	ctx, cancel := context.WithCancel(d.ctx)
	l.retirement = &retirement{name, cancel}
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

// revive ends that.
func (d *db) revive(name string) {
	d.set.Revive(name)
	l := d.live[name]
	l.retirement.cancel()
	l.retirement = nil
}

// Requests keep a version that has been replaced for at most so many times linger:
// a peer that is stuck with it must not keep it for good. Where there is no peer
// secret the requests may come from anybody, and the bound is lower.
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

// startClosing takes a version out of the set, and closes it when its readers
// have let go.
func (d *db) startClosing(name string) {
	v := d.set.Remove(name)
	delete(d.live, name)
	d.node.o.Cluster.Withdraw(d.name, name)
	d.closeLater(v, func() { d.send(outcome{version.Closed{Version: name}}) })
}

// closeLater closes a version that is not in the set, and then calls done. Its
// readers may take as long as they need: at shutdown the server cuts them off.
func (d *db) closeLater(v *version.Version, done func()) {
	d.closing.Go(func() {
		if err := v.Close(d.node.patience); err != nil {
			d.log.Warn("closing a version", "version", v.Info().Name, "error", err)
		}
		done()
	})
}

func (d *db) delete(name string) message {
	err := d.node.o.Store.Remove(d.name, name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return outcome{version.Deleted{Version: name, Err: err.Error()}}
	}
	return outcome{version.Deleted{Version: name}}
}
