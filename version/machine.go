package version

import (
	"fmt"
	"slices"
	"strings"

	"sequins/internal/content"
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

func (m *machine) act(op Op, in content.Input) {
	m.actions = append(m.actions, Action{Op: op, Input: in})
}

// entry returns a pointer to an input's entry, or nil. It is invalid after the
// next add or forget.
func (m *machine) entry(in content.Input) *Entry {
	if i := m.find(in); i >= 0 {
		return &m.Entries[i]
	}
	return nil
}

// add returns the entry of an input, creating it if necessary.
func (m *machine) add(in content.Input) *Entry {
	i := m.find(in)
	if i < 0 {
		i = slices.IndexFunc(m.Entries, func(e Entry) bool { return e.Name > in.Name })
		if i < 0 {
			i = len(m.Entries)
		}
		m.Entries = slices.Insert(m.Entries, i, Entry{Input: in})
	}
	return &m.Entries[i]
}

func (m *machine) forget(in content.Input) {
	if i := m.find(in); i >= 0 {
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
		m.Gone, m.Current = true, content.Input{}
		m.retryDeletes()
	case Waited:
		m.Waiting = false
	case Surveyed:
		if v := m.entry(m.Served); v != nil && m.canOpen(v) {
			m.open(v.Input)
		}
	case Absent:
		if v := m.entry(e.Input); v != nil && v.Work == Opening {
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
		m.noteRetry(e.Input)
	case Idle:
		if v := m.entry(e.Input); v != nil && v.Exit == Lingering {
			m.close(v)
		}
	case Closed:
		if v := m.entry(e.Input); v != nil && v.Exit == Closing {
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
	for _, in := range e.Local {
		v := m.add(in)
		v.Local, v.Former = true, in != e.Served && slices.Contains(e.Former, in)
	}
	m.Served, m.Likely, m.Taken, m.Looking, m.Waiting = e.Served, e.Likely, e.Taken, true, e.Waiting
	m.Pin, m.Keep = e.Pin, e.Keep
	m.Rejected = slices.DeleteFunc(slices.Clone(e.Held), func(in content.Input) bool { return slices.Contains(e.Local, in) })
	for _, f := range e.Failures {
		if v := m.entry(f.Input); v == nil || !m.failBefore(v, f) {
			m.Failed = append(m.Failed, f)
		}
	}
	for _, in := range []content.Input{m.Served, m.Taken} {
		if in.Name != "" && !m.Likely {
			m.open(in)
		}
	}
	rest := slices.DeleteFunc(m.inputs(), func(in content.Input) bool { return m.entry(in).Work != Resting })
	if !m.Likely { // otherwise the newest is judged by what is older
		slices.Reverse(rest)
	}
	for _, in := range rest {
		m.open(in)
	}
}

// failBefore makes v fail as it did before a restart, unless it is served. It reports whether it did.
func (m *machine) failBefore(v *Entry, f Failure) bool {
	if v.Input == m.Served || v.Input == m.Taken {
		return false
	}
	v.Failures = f.Attempts - 1
	fail(v, f.Reason, f.Faulty)
	return true
}

// newestOpened is how many of the newest versions of the source are opened at the
// start although nothing of them is on the disk: other nodes may have them.
const newestOpened = 10

// openListed opens the newest versions of the source that are not open.
func (m *machine) openListed() {
	for _, in := range slices.Backward(m.Listed[max(0, len(m.Listed)-newestOpened):]) {
		if v := m.entry(in); !m.isBehind(in) && in != m.Served && (v == nil || m.canOpen(v)) {
			m.open(in)
		}
	}
}

// canOpen reports whether nothing of v is open and nothing is being done about it.
func (m *machine) canOpen(v *Entry) bool {
	return v.Exit == Staying && v.Work == Resting && !v.Live
}

func (m *machine) open(in content.Input) {
	m.add(in).Work = Opening
	m.act(Open, in)
}

// noteListed records the versions in the source. Failed versions wait for their Retry.
func (m *machine) noteListed(e Listed) {
	if m.Gone {
		return
	}
	first := m.Looking
	m.Read, m.Looking, m.Listed, m.Unknown = true, false, ascending(e.Inputs), slices.Clone(e.Unknown)
	m.setPin(e.Pin)
	m.Rejected = slices.DeleteFunc(m.Rejected, func(in content.Input) bool { return !slices.Contains(m.Listed, in) })
	for _, f := range m.Failed {
		if slices.Contains(m.Listed, f.Input) && m.entry(f.Input) == nil {
			m.failBefore(m.add(f.Input), f)
		}
	}
	m.Failed = nil
	m.Keep = e.Keep
	if first {
		m.openListed()
	}
	if e.Relook {
		return
	}
	if v := m.entry(m.Served); v != nil && m.canOpen(v) {
		m.open(v.Input) // other nodes may have come back with it
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
	v := m.entry(e.Input)
	if v == nil || v.Work != Loading || v.Exit != Staying || v.Status == Active || m.wasServed(v) {
		return
	}
	if !v.Live || e.Changed {
		v.Live = true
		if v.Status != Error {
			v.Status = Prepared
		}
		m.act(Prepare, v.Input)
	}
}

// wasServed reports whether blocks of a version can be read by which clients were
// served. The source may have lost files of it since.
func (m *machine) wasServed(v *Entry) bool {
	return v.Live && v.Readable && (v.Input == m.Served || v.Former)
}

func (m *machine) noteSeen(e Seen) {
	v := m.entry(e.Input)
	if v == nil {
		return
	}
	if v.Work == Opening {
		v.Work, v.Live, v.Status = Resting, true, Prepared
	}
	if v.Live {
		v.Complete, v.Replicated, v.Readable, v.Whole = e.Complete, e.Replicated, e.Readable, e.Whole
		v.Held, v.Unjudged = e.Held, e.Unjudged
	}
}

func (m *machine) noteLoadEnded(e LoadEnded) {
	v := m.entry(e.Input)
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
	v := m.entry(e.Input)
	if v == nil || !v.Live || v.Exit > Lingering {
		return
	}
	m.actions = append(m.actions, Action{Op: SetAside, Input: v.Input, Partition: e.Partition})
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
	v := m.entry(e.Input)
	if v == nil || v.Exit != Deleting {
		return
	}
	if e.Err != "" {
		v.Reason, v.Failed = e.Err, true
		return
	}
	m.forget(e.Input)
}

// ascending returns inputs in the order of their names, one of each.
func ascending(inputs []content.Input) []content.Input {
	sorted := slices.SortedStableFunc(slices.Values(inputs), func(a, b content.Input) int { return strings.Compare(a.Name, b.Name) })
	return slices.CompactFunc(sorted, func(a, b content.Input) bool { return a.Name == b.Name })
}
