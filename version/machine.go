package version

import (
	"slices"
	"strings"
)

// Next takes one event: it notes what is new, then works out what is to be
// done about it. It is a pure function; the state it is given stays as it is.
//
// Events about versions that are not known, or that are out of step (a Seen of
// a version that has been closed), change nothing.
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

// entry returns what is known of a version, to be changed; nil if nothing is.
// It is invalid after the next add or forget.
func (m *machine) entry(name string) *Entry {
	if i, found := m.find(name); found {
		return &m.Entries[i]
	}
	return nil
}

// add returns the entry of a version, a new one if there is none.
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
		m.noteListed(e.Versions)
	case Gone:
		m.Gone, m.Current = true, ""
		m.retryDeletes()
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

// noteStart has everything opened that could be served at once: of the newest
// versions of the source and the one that was served before, or, as long as the
// source cannot be read, of all that is on the disk.
func (m *machine) noteStart(e Start) {
	for _, name := range e.Local {
		m.add(name).Local = true
	}
	m.Served = e.Served
	names := slices.Sorted(slices.Values(e.Local))
	if e.Served != "" && !e.Read && !slices.Contains(names, e.Served) {
		names = append(names, e.Served) // other nodes may have it
	}
	if e.Read {
		m.Read, m.Listed = true, m.newest(e.Listed)
		names = m.Listed
	}
	for _, name := range slices.Backward(names) {
		m.add(name).Work = Opening
		m.act(Open, name)
	}
}

// noteListed is a refresh: what has failed is tried again.
func (m *machine) noteListed(versions []string) {
	if m.Gone {
		return
	}
	m.Read, m.Listed = true, m.newest(versions)
	if v := m.entry(m.Served); v != nil && v.Exit == Staying && v.Work == Resting && !v.Live {
		v.Work = Opening // other nodes may have come back with it
		m.act(Open, v.Name)
	}
	for i := range m.Entries {
		v := &m.Entries[i]
		v.Retried, v.Reloaded = false, nil
		if v.Exit == Staying {
			v.Failed = false
			m.setAside(v, v.Damaged...)
		}
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

// notePlanned makes a version readable, or replaces what was readable of it by
// what its files are now. If clients are answered from it, it stays as it is.
func (m *machine) notePlanned(e Planned) {
	v := m.entry(e.Version)
	if v == nil || v.Work != Loading || v.Exit != Staying || v.Status == Active {
		return
	}
	if !v.Live || e.Changed {
		v.Live, v.Status = true, Prepared
		m.act(Prepare, v.Name)
	}
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
		v.Complete, v.Replicated = e.Complete, e.Replicated
	}
}

func (m *machine) noteLoadEnded(e LoadEnded) {
	v := m.entry(e.Version)
	if v == nil || (v.Work != Loading && v.Work != Cancelling) {
		return
	}
	v.Work = Resting
	switch {
	case v.Exit != Staying:
	case e.Err != "":
		fail(v, e.Err)
	case v.Complete:
		v.Reason = ""
	case e.Outdated:
	case v.Retried:
		fail(v, "the load has ended and partitions are still missing")
	default:
		v.Retried = true
	}
}

// fail stops all attempts until the next refresh or Retry. A version that clients are
// answered from stays that.
func fail(v *Entry, reason string) {
	v.Reason, v.Failed = reason, true
	if v.Status != Active {
		v.Status = Error
	}
}

// noteCorrupted has a block loaded again, each once between two refreshes: a
// disk that damages everything must not keep the source busy.
func (m *machine) noteCorrupted(e Corrupted) {
	v := m.entry(e.Version)
	if v == nil || !v.Live || v.Exit != Staying {
		return
	}
	if !slices.Contains(v.Reloaded, e.Partition) {
		m.setAside(v, e.Partition)
	} else if !slices.Contains(v.Damaged, e.Partition) {
		v.Damaged = append(v.Damaged, e.Partition)
	}
}

func (m *machine) setAside(v *Entry, partitions ...int) {
	for _, p := range partitions {
		v.Reloaded = append(v.Reloaded, p)
		m.actions = append(m.actions, Action{Op: SetAside, Version: v.Name, Partition: p})
	}
	v.Damaged = nil
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

// newest returns the last few of the versions, in ascending order, and the one
// that was served before a restart: it may be all that there is to serve, if
// those after it are not complete anywhere yet, or are broken.
func (m *machine) newest(versions []string) []string {
	v := slices.Clone(versions)
	slices.SortFunc(v, strings.Compare)
	v = slices.Compact(v)
	first := max(0, len(v)-Newest)
	if slices.Contains(v[:first], m.Served) {
		first--
		v[first] = m.Served
	}
	return v[first:]
}
