package version

import (
	"fmt"
	"slices"
)

// Next applies one event to s and returns the new state and the actions that
// follow. It is a pure function and does not modify s.
//
// Events about unknown versions, and late events (a Seen of a version that has
// been closed), change nothing.
func Next(s State, e Event) (State, []Action) {
	m := machine{State: s.clone()}
	m.note(e)
	m.decide()
	return m.State, m.actions
}

type machine struct {
	State
	actions []Action
}

func (m *machine) act(op Op, version string) {
	m.actions = append(m.actions, Action{Op: op, Version: version})
}

// entry returns a pointer to a version's entry, or nil. It is invalid after the
// next add or forget.
func (m *machine) entry(name string) *Entry {
	if i, found := m.find(name); found {
		return &m.Entries[i]
	}
	return nil
}

// add returns the entry of a version, creating it if necessary.
func (m *machine) add(name string) *Entry {
	i, found := m.find(name)
	if !found {
		m.Entries = slices.Insert(m.Entries, i, Entry{Name: name})
	}
	return &m.Entries[i]
}

func (m *machine) forget(name string) {
	if i, found := m.find(name); found {
		m.Entries = slices.Delete(m.Entries, i, i+1)
	}
}

func (m *machine) note(e Event) {
	switch e := e.(type) {
	case Start:
		m.noteStart(e)
	case Listed:
		m.noteListed(e)
	case Pinned:
		m.setPin(e.Pin)
	case Unlisted:
		m.Looking = false
	case Gone:
		m.Gone, m.Current = true, ""
		m.retryDeletes()
	case Waited:
		m.Waiting = false
	case Surveyed:
		if v := m.entry(m.Served); v != nil && m.canOpen(v) {
			m.open(v.Name)
		}
	case Absent:
		if v := m.entry(e.Version); v != nil && v.Work == Opening {
			v.Work = Resting
		}
	case Planned:
		m.notePlanned(e)
	case Seen:
		m.noteSeen(e)
	case LoadEnded:
		m.noteLoadEnded(e)
	case Postponed:
		m.notePostponed(e)
	case Corrupted:
		m.noteCorrupted(e)
	case Retry:
		m.noteRetry(e.Version)
	case Idle:
		if v := m.entry(e.Version); v != nil && v.Exit == Lingering {
			m.close(v)
		}
	case Closed:
		if v := m.entry(e.Version); v != nil && v.Exit == Closing {
			v.Live, v.Exit = false, Waiting
		}
	case Deleted:
		m.noteDeleted(e)
	}
}

// noteStart opens all that is on the disk, what was served before the restart
// first, whatever the source has: a cluster that restarts together then serves
// what its nodes have.
func (m *machine) noteStart(e Start) {
	for _, name := range e.Local {
		v := m.add(name)
		v.Local, v.Former = true, name != e.Served && slices.Contains(e.Former, name)
		v.Stale = name != e.Served && slices.Contains(e.Foreign, name)
	}
	m.Served, m.Likely, m.Looking, m.Waiting = e.Served, e.Likely, true, e.Waiting
	m.Pin, m.Keep, m.Taken = e.Pin, e.Keep, e.Taken
	m.Rejected = slices.DeleteFunc(ascending(e.Held), func(id string) bool { return slices.Contains(e.Local, id) })
	if m.Served != "" {
		m.open(m.Served)
	}
	for _, name := range slices.Backward(ascending(e.Local)) {
		if name != m.Served {
			m.open(name)
		}
	}
}

// newestOpened is how many of the newest versions of the source are opened at the
// start although nothing of them is on the disk: other nodes may have them.
const newestOpened = 10

// openListed opens the newest versions of the source that are not open.
func (m *machine) openListed() {
	for _, name := range slices.Backward(m.Listed[max(0, len(m.Listed)-newestOpened):]) {
		if v := m.entry(name); !m.isBehind(name) && name != m.Served && (v == nil || m.canOpen(v)) {
			m.open(name)
		}
	}
}

// canOpen reports whether nothing of v is open and nothing is being done about it.
func (m *machine) canOpen(v *Entry) bool {
	return v.Exit == Staying && v.Work == Resting && !v.Live
}

func (m *machine) open(name string) {
	m.add(name).Work = Opening
	m.act(Open, name)
}

// noteListed records the versions in the source. Failed versions wait for their Retry.
func (m *machine) noteListed(e Listed) {
	if m.Gone {
		return
	}
	first := m.Looking
	m.Read, m.Looking, m.Listed, m.Unknown = true, false, ascending(e.Versions), slices.Clone(e.Unknown)
	m.setPin(e.Pin)
	m.Rejected = slices.DeleteFunc(m.Rejected, func(id string) bool { return !slices.Contains(m.Listed, id) })
	m.Keep = e.Keep
	if first {
		m.openListed()
	}
	if e.Relook {
		return
	}
	if v := m.entry(m.Served); v != nil && m.canOpen(v) {
		m.open(v.Name) // other nodes may have come back with it
	}
	m.retryDeletes()
}

func (m *machine) retryDeletes() {
	for i := range m.Entries {
		if v := &m.Entries[i]; v.Exit == Deleting && v.Failed {
			v.Exit, v.Failed = Waiting, false
		}
	}
}

// notePlanned makes a version readable, or replaces it if its files have changed.
// A version that clients are served from, or were, stays as it is.
func (m *machine) notePlanned(e Planned) {
	v := m.entry(e.Version)
	if v == nil || v.Work != Loading || v.Exit != Staying || v.Status == Active || m.wasServed(v) {
		return
	}
	v.Stale = false
	if !v.Live || e.Changed {
		v.Live = true
		if v.Status != Error {
			v.Status = Prepared
		}
		m.act(Prepare, v.Name)
	}
}

// wasServed reports whether blocks of a version can be read by which clients were
// served. The source may have lost files of it since.
func (m *machine) wasServed(v *Entry) bool {
	return v.Live && v.Readable && !v.Stale && (v.Name == m.Served || v.Former)
}

func (m *machine) noteSeen(e Seen) {
	v := m.entry(e.Version)
	if v == nil {
		return
	}
	if v.Work == Opening {
		v.Work, v.Live, v.Status = Resting, true, Prepared
	}
	if v.Live {
		v.Complete, v.Replicated, v.Readable, v.Whole = e.Complete && !v.Stale, e.Replicated && !v.Stale, e.Readable, e.Whole
		v.Held, v.Unjudged = e.Held, e.Unjudged
	}
}

func (m *machine) noteLoadEnded(e LoadEnded) {
	v := m.entry(e.Version)
	if v == nil || (v.Work != Loading && v.Work != Cancelling) {
		return
	}
	cancelled := v.Work == Cancelling
	v.Work, v.Postponed = Resting, false
	m.Crowded = m.Crowded || e.NoRoom
	switch {
	case v.Exit != Staying, cancelled:
	case e.Err != "":
		fail(v, e.Err, e.Faulty)
		v.Passing = e.Passing
	case v.Complete:
		clearError(v)
	case e.Outdated:
	case v.Retried:
		fail(v, "the load has ended and partitions are still missing", false)
	default:
		v.Retried = true
	}
}

// fail stops all attempts until the next Retry. An active version stays active.
func fail(v *Entry, reason string, faulty bool) {
	v.Reason, v.Failed, v.Faulty, v.Passing = reason, true, faulty, false
	v.Failures++
	if v.Status != Active {
		v.Status = Error
	}
}

// noteCorrupted orders another load of a block: at once the first time, otherwise
// after a Retry, so that a faulty disk does not cause constant reads from the source.
func (m *machine) noteCorrupted(e Corrupted) {
	v := m.entry(e.Version)
	if v == nil || !v.Live || v.Exit > Lingering {
		return
	}
	m.actions = append(m.actions, Action{Op: SetAside, Version: v.Name, Partition: e.Partition})
	if v.Exit == Lingering { // loaded again if the version is wanted again
		return
	}
	if slices.Contains(v.Reloaded, e.Partition) {
		fail(v, fmt.Sprintf("the block of partition %d was damaged again after it had been loaded again", e.Partition), false)
		return
	}
	v.Reloaded = append(v.Reloaded, e.Partition)
}

func (m *machine) noteDeleted(e Deleted) {
	v := m.entry(e.Version)
	if v == nil || v.Exit != Deleting {
		return
	}
	if e.Err != "" {
		v.Reason, v.Failed = e.Err, true
		return
	}
	m.forget(e.Version)
}

// ascending returns the names sorted and without duplicates.
func ascending(names []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(names)))
}
