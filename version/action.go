package version

import (
	"slices"

	"sequins/internal/content"
)

// Op is the kind of an Action.
type Op uint8

const (
	// Load loads the missing partitions. Loaded follows.
	Load Op = iota
	// Activate makes a version the current one, which is recorded first: see Facts.Unrecorded.
	Activate
	// Cancel stops a load; Loaded follows.
	Cancel
	// Retire waits until a version is idle, which sets its Removal to Idle.
	Retire
	// Revive takes Retire back. What there is of the version is looked at again, and its failure is forgotten.
	Revive
	// Close removes a version from the set and closes it after the last reference is released. HasClosed follows.
	Close
	// Delete deletes the files of a version. Deleted follows.
	Delete
)

// Action is something that the node has to do, in the order returned by Decide.
type Action struct {
	Op    Op
	Input content.Input
	Back  bool // for Activate: the version is older than the current one, which the pin does not allow
}

// do records that an action is being carried out, so that Decide does not order it again.
func (f *Facts) do(a Action) {
	v := f.Add(a.Input)
	switch a.Op {
	case Load:
		if v.Removal != Staying { // nothing of it is in the set any more
			*v = Entry{Input: v.Input, Former: v.Former}
		}
		v.Work, v.Begun, v.Local = Loading, false, true
	case Activate:
		v.Local, v.Former = true, false // its manifest is stored even if no block is
		if old := f.entry(f.Current); old != nil {
			old.Former = true
		}
		f.Current = a.Input
		if f.Taken.Name <= a.Input.Name {
			f.Taken = content.Input{} // a rollback does not lead to it
		}
	case Cancel:
		v.Work = Cancelling
		if v.Coverage == Absent {
			v.Removal = Closed
		}
	case Retire:
		v.Removal = Lingering
	case Revive:
		v.Removal, v.Coverage, v.Complete, v.Verdict, v.Failure, v.Stalled = Staying, Empty, false, Unjudged, Failure{}, false
	case Close:
		v.Removal = Closing
	case Delete:
		v.Removal = Deleting
	}
}

// Unopened returns the inputs to be opened before the next decision: every valid block on the disk or, if there are none, the node finds out
// whether the cluster has the version, without loading anything. Opened follows. What was served and what others serve come first, then the
// newest.
func (f *Facts) Unopened() (order []content.Input) {
	for _, v := range f.Entries {
		if v.Work == Unopened {
			order = append(order, v.Input)
		}
	}
	slices.Reverse(order)
	for _, first := range []content.Input{f.Taken, f.Served} {
		if i := slices.Index(order, first); i >= 0 {
			order = slices.Insert(slices.Delete(order, i, i+1), 0, first)
		}
	}
	return order
}

// Opened records that an input has been opened. A version of which something was found is in the set, and See follows.
func (f *Facts) Opened(in content.Input, found bool) {
	if v := f.entry(in); v != nil && v.Work == Unopened {
		v.Work = Resting
		if found {
			v.Coverage = Empty
		}
	}
}

// Planned records that a load has a plan; changed says that it is another one than that of the version in the set. It reports whether the version
// enters the set, or replaces the one of its input there; See follows then. A version that clients are served from, or were, stays as it is.
func (f *Facts) Planned(in content.Input, changed bool) (enters bool) {
	v := f.entry(in)
	if v == nil || v.Work != Loading || v.Removal != Staying || in == f.Current {
		return false
	}
	served := v.Coverage >= Partial && (in == f.Before() || v.Former)
	if v.Coverage > Absent && (!changed || served) {
		return false
	}
	v.Coverage, v.Complete = Empty, false
	return true
}

// See records how much of a version in the set is there, and the verdict on it.
func (f *Facts) See(in content.Input, coverage Coverage, complete bool, verdict Verdict) {
	if v := f.entry(in); v != nil {
		v.Coverage, v.Complete, v.Verdict, v.Stalled = coverage, complete, verdict, v.Stalled && complete
		v.recover()
	}
}

// Stall records that a version has waited for other nodes for long enough.
func (f *Facts) Stall(in content.Input) {
	if v := f.entry(in); v != nil && v.Complete && v.Removal == Staying && f.Floor().Name == "" {
		v.Stalled = true
	}
}

// recover forgets the failure of a version that is complete.
func (v *Entry) recover() {
	if v.Complete && v.Work == Resting && !v.Failure.Waits {
		v.Failure = Failure{}
	}
}

// Loaded records the end of a load: the last See precedes it. failure has a Reason if it has failed. outdated says that
// what this node has to hold has changed since the load began, so that another one follows.
func (f *Facts) Loaded(in content.Input, failure Failure, outdated bool) {
	v := f.entry(in)
	if v == nil || v.Work != Loading && v.Work != Cancelling {
		return
	}
	cancelled := v.Work == Cancelling
	v.Work, v.Begun = Resting, false
	switch {
	case v.Removal != Staying, cancelled:
	case failure.Reason != "":
		f.Fail(in, failure)
	case !v.Complete && !outdated:
		f.Fail(in, Failure{Reason: "the load has ended and partitions are still missing"})
	default:
		v.recover()
	}
}

// Fail records a failure of a version that stays. No attempt is made before Retry.
func (f *Facts) Fail(in content.Input, failure Failure) {
	if v := f.entry(in); v != nil && v.Removal == Staying {
		v.Failure = failure
		v.Failure.Waits = true
	}
}

// Retry lets a version that has failed be loaded again.
func (f *Facts) Retry(in content.Input) {
	if v := f.entry(in); v != nil && v.Removal == Staying {
		v.Failure.Waits = false
		v.recover()
	}
}

// Begin records that a load has its turn.
func (f *Facts) Begin(in content.Input) {
	if v := f.entry(in); v != nil && v.Work == Loading {
		v.Begun = true
	}
}

// HasIdled records the end of Retire.
func (f *Facts) HasIdled(in content.Input) {
	if v := f.entry(in); v != nil && v.Removal == Lingering {
		v.Removal = Idle
	}
}

// HasClosed records the end of Close.
func (f *Facts) HasClosed(in content.Input) {
	if v := f.entry(in); v != nil && v.Removal == Closing {
		v.Removal, v.Coverage, v.Complete = Closed, Absent, false
	}
}

// Deleted records the end of Delete; reason is why files could not be deleted, or "".
func (f *Facts) Deleted(in content.Input, reason string) {
	v := f.entry(in)
	switch {
	case v == nil || v.Removal != Deleting:
	case reason != "":
		v.Removal, v.Failure.Reason = Undeleted, reason
	default:
		f.forget(in)
	}
}

// Start adds the inputs that are on the disk when the node starts. They are opened whatever the source has: a cluster that
// restarts together then serves what its nodes have. So is what was served, and what other nodes serve.
func (f *Facts) Start(local, former []content.Input) {
	for _, in := range local {
		v := f.Add(in)
		v.Local, v.Work, v.Former = true, Unopened, in != f.Served && slices.Contains(former, in)
	}
	for _, in := range []content.Input{f.Served, f.Taken} {
		if in.Name != "" {
			f.Add(in).Work = Unopened
		}
	}
}

// newestOpened is how many of the newest versions of the source are opened at the
// start although nothing of them is on the disk: other nodes may have them.
const newestOpened = 10

// List records the inputs in the source, ascending, one of each name, and the versions that could not be inspected. Failed versions wait for Retry.
func (f *Facts) List(inputs []content.Input, unknown []string) {
	if f.Source == Gone {
		return
	}
	f.Listed, f.Unknown = inputs, unknown
	if f.Source == Unasked {
		for _, in := range f.Listed[max(0, len(f.Listed)-newestOpened):] {
			if !f.isBehind(in) && in != f.Served {
				f.OpenAgain(in)
			}
		}
	}
	f.Source = Known
}

// OpenAgain has an input opened of which nothing is open and about which nothing is being done: other nodes may have come with it.
func (f *Facts) OpenAgain(in content.Input) {
	if in.Name == "" {
		return
	}
	if v := f.Add(in); v.Removal == Staying && v.Work == Resting && v.Coverage == Absent {
		v.Work = Unopened
	}
}

// DeleteAgain has the files deleted that could not be.
func (f *Facts) DeleteAgain() {
	for i := range f.Entries {
		if v := &f.Entries[i]; v.Removal == Undeleted {
			v.Removal = Closed
		}
	}
}
