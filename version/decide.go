package version

import "slices"

// decide compares what is with what should be, and orders what is missing.
func (m *machine) decide() {
	if m.Gone {
		m.removeAll()
		return
	}
	m.activate()
	if m.Looking {
		return
	}
	wanted := m.wanted()
	for _, name := range wanted {
		m.load(m.add(name))
	}
	for _, name := range []string{m.Current, m.Served} {
		// What is served may lack partitions: it waited for the cluster alone, or a block was corrupt.
		if v := m.entry(name); v != nil && v.Live {
			m.load(v)
		}
	}
	m.removeOthers(wanted)
}

// activate switches to the newest version that is ready, if that is forward.
func (m *machine) activate() {
	m.judgeServed()
	for i := len(m.Entries) - 1; i >= 0; i-- {
		v := &m.Entries[i]
		if v.Name <= m.Current || v.Name < m.Served {
			return
		}
		if v.Live && v.Exit == Staying && (v.Replicated && m.mayServe(v) || m.mustServe(v)) {
			old := m.entry(m.Current)
			m.Current, m.Served, v.Status = v.Name, "", Active
			v.Local = true // its manifest is kept, also where no block of it is here
			m.act(Activate, v.Name)
			if old != nil {
				m.remove(old)
			}
			return
		}
	}
}

// mayServe reports whether clients may be answered from v once it is ready: it
// is in the source, or the source cannot be read, or it was served before a
// restart.
func (m *machine) mayServe(v *Entry) bool {
	return !m.Read && !m.Looking || v.Name == m.Served || slices.Contains(m.Listed, v.Name)
}

// mustServe reports whether v was served before a restart and cannot be made
// whole now. What can be read of it is served: that is more than nothing, and an
// older version would take clients back in time.
func (m *machine) mustServe(v *Entry) bool {
	return v.Name == m.Served && v.Failed && v.Readable
}

// judgeServed gives up on the version that was served before a restart when
// nothing of it can be read and that cannot change: it has gone from the source,
// or it is at fault itself. A source or a disk that fails proves nothing.
func (m *machine) judgeServed() {
	v := m.entry(m.Served)
	switch {
	case m.Current != "":
		m.Served = ""
	case v != nil && (v.Work != Resting || v.Readable):
	case v != nil && v.Failed && v.Faulty, m.Read && !slices.Contains(m.Listed, m.Served) && !slices.Contains(m.Unknown, m.Served):
		m.Served = ""
	}
}

// wanted returns the versions that should be loaded, the newest first: the
// newest of the source that has not failed, if it is ahead of what is served,
// and all that are newer, which are tried again.
func (m *machine) wanted() []string {
	var names []string
	for _, name := range slices.Backward(m.Listed) {
		if name <= m.Current || name < m.Served {
			break
		}
		names = append(names, name)
		if v := m.entry(name); v == nil || v.Reason == "" {
			break
		}
	}
	return names
}

// load orders a load of what is missing of v, unless something is being done
// about it already or has failed since the last refresh.
func (m *machine) load(v *Entry) {
	if v.Exit != Staying || v.Work != Resting || v.Failed {
		return
	}
	if v.Complete {
		clearError(v)
		return
	}
	switch {
	case v.Status == Active:
	case v.Live:
		v.Status = Prepared
	default:
		v.Status = Building
	}
	v.Work, v.Local = Loading, true
	m.act(Load, v.Name)
}

// clearError takes back the failure of a load that had published all partitions
// before it failed: no other load follows that could end well.
func clearError(v *Entry) {
	v.Reason, v.Faulty, v.Passing, v.Failures = "", false, false, 0
	if v.Status == Error {
		v.Status = Prepared
	}
}

// removeOthers removes what is neither served nor wanted: what is older than
// the current version, has gone from the source, or was superseded while it
// was loading. As long as the source has not been read, nothing is known to be
// superfluous. What was served before a restart stays until another version is
// active.
func (m *machine) removeOthers(wanted []string) {
	for _, name := range m.names() {
		v := m.entry(name)
		switch {
		case v.Exit != Staying:
			m.leave(v)
		case name == m.Current || slices.Contains(wanted, name):
		case !m.Read:
		case name == m.Served, slices.Contains(m.Unknown, name):
		case m.mayStillServe(v):
		default:
			m.remove(v)
		}
	}
}

// mayStillServe reports whether v could become active although a newer version
// is being loaded: it is all here and waits for other nodes.
func (m *machine) mayStillServe(v *Entry) bool {
	return v.Name > m.Current && slices.Contains(m.Listed, v.Name) &&
		v.Live && v.Complete && v.Work == Resting
}

func (m *machine) removeAll() {
	for _, name := range m.names() {
		v := m.entry(name)
		if v.Live && v.Exit < Closing {
			v.Status = Removing
			m.close(v)
		}
		m.remove(v)
	}
}

// remove begins the exit of v, or forgets it if there is nothing to undo. While
// it is being opened it is not known what there is to undo: then later.
func (m *machine) remove(v *Entry) {
	switch {
	case v.Work == Opening:
		return
	case v.Exit != Staying:
	case v.Live:
		v.Status, v.Exit = Removing, Lingering
		m.act(Retire, v.Name)
	case v.Local:
		v.Status, v.Exit = Removing, Waiting
	default:
		m.forget(v.Name)
		return
	}
	m.leave(v)
}

// leave goes on with an exit: a load is cancelled, and what can neither be
// read nor written any more is deleted.
func (m *machine) leave(v *Entry) {
	if v.Work == Loading {
		v.Work = Cancelling
		m.act(Cancel, v.Name)
	}
	if v.Exit == Waiting && v.Work == Resting {
		v.Exit = Deleting
		m.act(Delete, v.Name)
	}
}

func (m *machine) close(v *Entry) {
	v.Exit = Closing
	m.act(Close, v.Name)
}

func (m *machine) names() []string {
	names := make([]string, len(m.Entries))
	for i, v := range m.Entries {
		names[i] = v.Name
	}
	return names
}
