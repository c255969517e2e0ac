package version

import (
	"cmp"
	"slices"

	"sequins/internal/content"
)

// Decide returns what a node has to do, and the facts when that is being carried out. It is a pure function: the same facts lead to the same
// decision, before and after a restart, and those that it returns lead to none.
func Decide(f Facts) (Facts, []Action) {
	d := decision{Facts: f.Clone()}
	if d.Source == Gone {
		for _, in := range d.inputs() {
			if v := d.entry(in); v.Coverage > Absent && v.Removal < Closing {
				d.act(Close, in)
			}
			d.remove(in)
		}
		return d.Facts, d.actions
	}
	d.activate()
	if d.Source == Unasked {
		d.removeOthers(nil)
		return d.Facts, d.actions
	}
	wanted := d.wanted()
	for _, in := range wanted {
		d.load(in)
	}
	for _, in := range []content.Input{d.Current, d.Before()} {
		// The current version may lack partitions: the switch only waited for the cluster, or a block is corrupt.
		if v := d.entry(in); v != nil && v.Coverage > Absent {
			d.load(in)
		}
	}
	if v, _ := d.Entry(d.Taken); d.isAhead() && v.Removal == Staying && v.Failure.Reason != "" {
		d.load(d.Taken) // again, while newer versions do not wait for it
	}
	d.removeOthers(wanted)
	return d.Facts, d.actions
}

// A decision is the facts as they are when its actions are being carried out.
type decision struct {
	Facts
	actions []Action
}

func (d *decision) act(op Op, in content.Input) { d.order(Action{Op: op, Input: in}) }

func (d *decision) order(a Action) {
	d.actions = append(d.actions, a)
	d.do(a)
}

// activate switches to the newest version that is ready, if it is newer than the current one, or if the pin does not allow that.
func (d *decision) activate() {
	v := d.successor()
	if v == nil {
		return
	}
	old := d.Current
	d.order(Action{Op: Activate, Input: v.Input, Back: v.Name < old.Name})
	if old.Name != "" && !slices.Contains(d.kept(), old) {
		d.remove(old)
	}
}

// successor returns the version to switch to, or nil. What was served before a restart comes last if the pin does not
// allow it: it is served only until another version is ready. A node that has served nothing, or has lost its disk, does not begin with something
// older than what other nodes serve: clients may have read that here.
func (d *decision) successor() *Entry {
	if d.Unrecorded && d.Current.Name != "" && d.Pin.Allows(d.Current.Name) {
		return nil
	}
	var served *Entry
	before, least := d.Before(), ""
	if before.Name == "" && d.Current.Name == "" {
		least = d.taken().Name
	}
	for i := len(d.Entries) - 1; i >= 0; i-- {
		v := &d.Entries[i]
		switch {
		case v.Name < least:
		case d.isBehind(v.Input) || !d.isReady(v):
		case d.Pin.Allows(v.Name):
			return v
		case v.Input == before:
			served = v
		}
	}
	return served
}

// isOld reports whether an input is active, or has a lesser name than what is, if the pin allows that. An input that is only
// behind what was served before a restart is not old: it is needed if that is dropped.
func (d *decision) isOld(in content.Input) bool {
	return in == d.Current || in.Name < d.Current.Name && d.Pin.Allows(d.Current.Name)
}

func (d *decision) isReady(v *Entry) bool {
	ready := v.Coverage == Replicated && v.Verdict == Passed && d.mayServe(v)
	return v.Coverage > Absent && v.Removal == Staying && (ready || d.mustServe(v) || d.mayReturn(v))
}

// mayServe reports whether clients may be answered from v once it is ready: it is in the source, or the source cannot be read, or it was served
// before a restart, is served by other nodes, or is kept. A kept version need not wait for the first listing of the source if the pin does not allow
// what was served.
func (d *decision) mayServe(v *Entry) bool {
	before := d.Before()
	early := before.Name != "" && !d.Pin.Allows(before.Name)
	return d.Source == Away || v.Input == before || v.Input == d.taken() || d.isLikely(v.Input) || slices.Contains(d.Listed, v.Input) ||
		(d.Source != Unasked || early) && d.isKept(v)
}

// mustServe reports whether v was active before a restart and is served again although the cluster lacks partitions
// of it: the node did that before, too, and other nodes have had time to advertise theirs. A version of which that is
// only likely has to be complete here, or to have failed to become so.
func (d *decision) mustServe(v *Entry) bool {
	if v.Input != d.Before() || v.Coverage < Partial || d.Likely && v.Verdict != Passed {
		return false
	}
	return v.Failure.Waits || !d.Waiting && (!d.Likely || v.Complete)
}

// wanted returns the inputs that should be loaded, newest first: the newest of the source that has neither failed nor is held, if it is newer than
// the current one, and those newer ones that are retried, or held: of the held ones only the newest, and none beside others when the disk is full, so
// that held versions do not keep others from being loaded. Behind a stalled one an older one is wanted, too. What other nodes serve comes before all of
// them.
func (d *decision) wanted() []content.Input {
	if d.takes() {
		return []content.Input{d.Taken}
	}
	var wanted []content.Input
	for _, in := range slices.Backward(d.Listed) {
		if d.isBehind(in) {
			break
		}
		v, _ := d.Entry(in)
		held := v.Verdict == Held && v.Removal == Staying
		if (held || d.isRejected(in)) && (d.isHeldBehind(in.Name) || d.isCrowded() && len(wanted) > 0) {
			continue
		}
		wanted = append(wanted, in)
		if v.Removal != Staying || v.Failure.Reason == "" && !held && !v.Stalled { // what is revived has not failed any more
			break
		}
	}
	return wanted
}

// isRejected reports whether an input that is not judged, or is being removed, was held when it was judged last.
func (d *decision) isRejected(in content.Input) bool {
	v, _ := d.Entry(in)
	return (v.Verdict == Unjudged || v.Removal != Staying) && slices.Contains(d.Rejected, in)
}

// isHeldBehind reports whether a version newer than name is held, too.
func (d *decision) isHeldBehind(name string) bool {
	return slices.ContainsFunc(d.Entries, func(v Entry) bool {
		return v.Name > name && v.Verdict == Held && v.Removal == Staying && slices.Contains(d.Listed, v.Input)
	})
}

// isCrowded reports whether a version lacks room on the disk.
func (d *decision) isCrowded() bool {
	return slices.ContainsFunc(d.Entries, func(v Entry) bool { return v.Failure.Kind == NoRoom && v.Removal == Staying && !v.Complete })
}

// load orders a load of the missing partitions of an input, unless other work on it is under way or it has failed since its last Retry. The removal
// of a version that is wanted again ends, unless it is being closed or deleted: then it is loaded after that.
func (d *decision) load(in content.Input) {
	v := d.Add(in)
	if v.Removal == Lingering || v.Removal == Idle {
		d.act(Revive, in)
	}
	again := v.Removal == Closed || v.Removal == Undeleted
	if v.Work == Resting && (again || v.Removal == Staying && !v.Failure.Waits && !v.Complete) {
		d.act(Load, in)
	}
}

// removeOthers removes what is neither served nor wanted: what is older than the current version, has gone from the source, or was superseded before
// its load had begun, or after it had ended without all that this node has to hold, unless it has failed: then it would be loaded again if the newer one fails, too. As long as the source has not been read, nothing is known to be
// superfluous. What was served before a restart stays until another version is active, and everything does if that is not known.
func (d *decision) removeOthers(wanted []content.Input) {
	kept, before, taken := d.kept(), d.Before(), d.taken()
	for _, in := range d.inputs() {
		v := d.entry(in)
		switch {
		case v.Removal != Staying:
			d.leave(in)
		case slices.Contains(kept, in):
		case in == d.Current || slices.Contains(wanted, in):
		case d.Source != Known:
		case in == before, in == d.Taken && d.isAhead(), slices.Contains(d.Unknown, in.Name), d.Likely && d.Current.Name == "":
		case d.mayStillServe(v), d.takes() && in.Name >= taken.Name && slices.Contains(d.Listed, in):
		default:
			d.remove(in)
		}
	}
}

// mayStillServe reports whether v could become active although a newer version is loading: it is complete here and
// waits for other nodes, or its load has begun. Otherwise a node would never switch if versions came faster than they load.
func (d *decision) mayStillServe(v *Entry) bool {
	switch {
	case d.isOld(v.Input) || !slices.Contains(d.Listed, v.Input):
		return false
	case v.Verdict == Held:
		return !d.isHeldBehind(v.Name) && !d.isCrowded()
	case v.Failure.Waits && v.Failure.Kind != NoRoom && v.Coverage <= Empty: // it takes no room
		return true
	}
	return v.Coverage > Absent && v.Complete && v.Work == Resting || v.Work == Loading && v.Begun
}

// remove begins the removal of an input, or forgets it if there is nothing to undo. Before it has been opened, that is not known.
func (d *decision) remove(in content.Input) {
	v := d.entry(in)
	switch {
	case v.Work == Unopened:
		return
	case v.Removal != Staying, v.Local && v.Coverage == Absent:
	case v.Coverage > Absent:
		d.act(Retire, in)
	default:
		d.forget(in)
		return
	}
	d.leave(in)
}

// leave continues a removal: it cancels a load, and deletes what is neither being read nor written.
func (d *decision) leave(in content.Input) {
	v := d.entry(in)
	if v.Work == Loading {
		d.act(Cancel, in)
	}
	if v.Removal == Idle {
		d.act(Close, in)
	}
	if v.Work == Resting && v.Coverage == Absent && (v.Removal == Staying || v.Removal == Closed) {
		d.act(Delete, in)
	}
}

func (d *decision) inputs() []content.Input {
	all := make([]content.Input, len(d.Entries))
	for i, v := range d.Entries {
		all[i] = v.Input
	}
	return all
}

// kept returns the former versions that stay on the disk and open: the newest Keep-1 that are complete or were active,
// and that are neither held nor excluded, one of a name; none when the disk is full. A version that is not the pinned one stays, too: the pin may be taken back.
func (d *decision) kept() []content.Input {
	var kept []content.Input
	names, before := []string{d.Current.Name}, d.Before()
	for i := len(d.Entries) - 1; i >= 0 && len(kept) < d.Keep-1 && !d.isCrowded(); i-- {
		v := &d.Entries[i]
		former := v.Former || v.Complete && v.Name < max(d.Current.Name, before.Name)
		if !former || v.Verdict == Held || v.Coverage == Absent || v.Removal != Staying || v.Input == d.Current || v.Input == before ||
			slices.Contains(d.Pin.Exclude, v.Name) || slices.Contains(names, v.Name) {
			continue
		}
		kept, names = append(kept, v.Input), append(names, v.Name)
	}
	return kept
}

// mayReturn reports whether v is a kept version that is at least as whole as what is served, or was before a restart, which the pin does not
// allow. It does not wait for more replicas: nodes may be down, and each of them that is up has kept its part.
func (d *decision) mayReturn(v *Entry) bool {
	served := cmp.Or(d.Current.Name, d.Before().Name)
	return served != "" && !d.Pin.Allows(served) && v.Complete && v.Coverage >= Whole && v.Verdict == Passed && d.isKept(v)
}

// isKept reports whether v is kept, and the source does not list its version with another input that may be served.
func (d *decision) isKept(v *Entry) bool {
	other := func(in content.Input) bool {
		e, _ := d.Entry(in)
		return in.Name == v.Name && in != v.Input && !e.Failure.Waits && e.Verdict != Held
	}
	return slices.Contains(d.kept(), v.Input) && !slices.ContainsFunc(d.Listed, other)
}
