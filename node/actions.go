package node

import (
	"cmp"
	"errors"
	"io/fs"
	"time"

	"sequins/internal/content"
	"sequins/version"
)

// carryOut executes an action that the facts say is being carried out.
func (d *db) carryOut(a version.Action) {
	switch a.Op {
	case version.Open:
		d.keeper.open(a.Input)
	case version.Load:
		d.loads.startLoad(a.Input)
	case version.Activate:
		d.activate(a.Input, a.Back)
	case version.Cancel:
		d.loads.running[a.Input].cancel()
	case version.Retire:
		d.keeper.retire(a.Input)
	case version.Revive:
		d.keeper.revive(a.Input)
	case version.Close:
		d.keeper.startClosing(a.Input)
	case version.Delete:
		d.bg.work(func() message {
			err := d.node.o.Store.Remove(d.name, a.Input)
			return func() { d.deleted(a.Input, err) }
		})
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
	if v, _ := d.facts.Entry(in); v.Complete && d.loads.running[in] != nil {
		d.loads.reportLoaded(in, d.loads.running[in])
	}
	l := d.keeper.live[in]
	l.Switched()
	d.judge.report(l)
	d.lister.checkSwitched(in.Name)
	d.keeper.keepManifest(l)
	f := d.records[in]
	f.activeAt = time.Now()
	after := f.activeAt.Sub(f.found)
	d.node.o.Metrics.Statsd.Active(d.name, in.Name, after)
	if old.Name == "" && in == d.facts.Served {
		d.log.Info("version active", "version", in.Name)
		return
	}
	d.events.Active(in.Name, old.Name, after)
	if back {
		d.events.RolledBack(in.Name, old.Name, cmp.Or(d.pin.Reasons[old.Name], d.pin.Reasons[in.Name]))
	}
}

// deleted records that the files of a version were deleted, or could not be.
func (d *db) deleted(in content.Input, err error) {
	reason := ""
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		reason = err.Error()
	}
	d.facts.Deleted(in, reason)
	d.decide()
}
