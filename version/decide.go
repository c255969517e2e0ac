package version

import "slices"

// decide compares the state with the desired state, and orders the actions that are missing.
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
		v := m.add(name)
		m.revive(v)
		m.load(v)
	}
	for _, name := range []string{m.Current, m.Served} {
		// The current version may lack partitions: the switch only waited for the cluster, or a block is corrupt.
		if v := m.entry(name); v != nil && v.Live {
			m.load(v)
		}
	}
	m.removeOthers(wanted)
}

// activate switches to the newest version that is ready, if it is newer than the current one, or if the pin does not
// allow that.
func (m *machine) activate() {
	m.judgeServed()
	v := m.successor()
	if v == nil {
		return
	}
	old := m.entry(m.Current)
	m.actions = append(m.actions, Action{Op: Activate, Version: v.Name, Back: v.Name < m.Current})
	m.Current, m.Served, v.Status = v.Name, "", Active
	m.Superseded, m.Crowded = false, false
	v.Local = true // its manifest is stored even if no block is
	if old != nil {
		m.replace(old)
	}
}

// successor returns the version to switch to, or nil. What was served before a restart comes last if the pin does not
// allow it: it is served only until another version is ready.
func (m *machine) successor() *Entry {
	var served *Entry
	for i := len(m.Entries) - 1; i >= 0; i-- {
		v := &m.Entries[i]
		switch {
		case m.isBehind(v.Name):
			return served
		case v.Name == m.Current || m.Unrecorded && v.Name != m.Served || !m.isReady(v):
		case m.Pin.Allows(v.Name):
			return v
		case v.Name == m.Served && !m.isOpening():
			served = v
		}
	}
	return served
}

// isOpening reports whether a version is being opened that the pin allows: it may be ready in a moment.
func (m *machine) isOpening() bool {
	return slices.ContainsFunc(m.Entries, func(v Entry) bool { return v.Work == Opening && v.Name != m.Served && m.Pin.Allows(v.Name) })
}

// isBehind reports whether the node does not go back to a version: from the current one, or from what was served before
// a restart.
func (m *machine) isBehind(id string) bool {
	return m.isOld(id) || id < m.Floor()
}

// isOld reports whether a version is not newer than the current one, if the pin allows that.
func (m *machine) isOld(id string) bool {
	return m.Current != "" && m.Pin.Allows(m.Current) && id <= m.Current
}

func (m *machine) isReady(v *Entry) bool {
	return v.Live && v.Exit == Staying && (v.Replicated && !v.Held && m.mayServe(v) || m.mustServe(v) || m.mayReturn(v))
}

// mayServe reports whether clients may be answered from v once it is ready: it
// is in the source, or the source cannot be read, or it was served before a
// restart or is kept. A kept version need not wait for the first look at the source
// if the pin does not allow what was served.
func (m *machine) mayServe(v *Entry) bool {
	early := m.Served != "" && !m.Pin.Allows(m.Served)
	return !m.Read && !m.Looking || v.Name == m.Served || slices.Contains(m.Listed, v.Name) || (!m.Looking || early) && slices.Contains(m.kept(), v.Name)
}

// mustServe reports whether v was active before a restart and is served again although the cluster lacks partitions
// of it: the node did that before, too, and other nodes have had time to advertise theirs. A version of which that is
// only likely has to be complete here, or to have failed to become so.
func (m *machine) mustServe(v *Entry) bool {
	if v.Name != m.Served || !v.Readable || m.Likely && (v.Held || v.Unjudged) {
		return false
	}
	return v.Failed || !m.Waiting && (!m.Likely || v.Complete)
}

// judgeServed drops the version that was active before a restart if nothing of it can be read and that cannot change:
// it is not in the source any more, or it is faulty itself. An error of the source or the disk is no reason to drop it.
func (m *machine) judgeServed() {
	v := m.entry(m.Served)
	switch {
	case m.Current != "":
		m.Served = ""
	case v != nil && (v.Work != Resting || v.Readable):
	case v != nil && v.Failed && v.Faulty, m.Read && !m.Waiting && (m.revisionFaulty(m.Served) || m.isGone(m.Served) && m.hasAnother()):
		m.Served = ""
	}
}

// isGone reports whether a version is not in the source any more.
func (m *machine) isGone(id string) bool {
	return !inSource(m.Listed, id) && !inSource(m.Unknown, id)
}

// hasAnother reports whether a version other than Served may be served. While there is none, nothing is won by
// dropping Served, and other nodes may come back with it.
func (m *machine) hasAnother() bool {
	return len(m.Listed) > 0 || slices.ContainsFunc(m.Entries, func(v Entry) bool { return v.Name != m.Served && v.Live && v.Exit == Staying })
}

// revisionFaulty reports whether a revision of a version is faulty itself: then the files of the version are.
func (m *machine) revisionFaulty(id string) bool {
	return slices.ContainsFunc(m.Entries, func(v Entry) bool { return Name(v.Name) == Name(id) && v.Failed && v.Faulty })
}

// inSource reports whether any revision of a version is among those of the source.
func inSource(ids []string, id string) bool {
	return slices.ContainsFunc(ids, func(each string) bool { return Name(each) == Name(id) })
}

// wanted returns the versions that should be loaded, newest first: the newest of the source that has neither failed nor
// is held, if it is newer than the current one, and those newer ones that are retried, or held: of these only the
// newest, and none when the disk is full, so that held versions do not keep others from being loaded.
func (m *machine) wanted() []string {
	if m.takes() {
		return []string{m.Served}
	}
	var names []string
	for _, name := range slices.Backward(m.Listed) {
		if m.isBehind(name) {
			break
		}
		v := m.entry(name)
		held := v != nil && v.Held && v.Exit == Staying
		if (held || slices.Contains(m.Rejected, name)) && (m.isHeldBehind(name) || m.Crowded && len(names) > 0) {
			continue
		}
		names = append(names, name)
		if v == nil || v.Reason == "" && !held {
			break
		}
	}
	return names
}

// takes reports whether the version that other nodes serve is loaded before newer ones.
func (m *machine) takes() bool {
	v := m.entry(m.Served)
	return m.Taken && m.Current == "" && m.Served != "" && m.Pin.Allows(m.Served) && inSource(m.Listed, m.Served) && (v == nil || !v.Failed)
}

// isHeldBehind reports whether a newer version is held, too.
func (m *machine) isHeldBehind(id string) bool {
	return slices.ContainsFunc(m.Entries, func(v Entry) bool {
		return v.Name > id && v.Held && v.Exit == Staying && slices.Contains(m.Listed, v.Name)
	})
}

// revive ends the removal of v, which is wanted again, unless it is being closed or deleted: then it is loaded after
// that. Its files may have changed meanwhile, so that it is stale if its blocks are still open.
func (m *machine) revive(v *Entry) {
	switch {
	case v.Exit == Lingering:
		v.Status, v.Stale = Prepared, true
		m.act(Revive, v.Name)
	case v.Exit == Waiting, v.Exit == Deleting && v.Failed:
		v.Status, v.Stale, v.Readable = Available, false, false
	default:
		return
	}
	v.Complete, v.Replicated, v.Held, v.Unjudged = false, false, false, false
	v.Exit, v.Failed, v.Retried, v.Reloaded = Staying, false, false, nil
}

// load orders a load of the missing partitions of v, unless other work on v is under way or it has failed since its
// last Retry. A version in ERROR stays that until it is complete.
func (m *machine) load(v *Entry) {
	if v.Exit != Staying || v.Work != Resting || v.Failed {
		return
	}
	if v.Complete {
		clearError(v)
		return
	}
	switch {
	case v.Status == Active, v.Status == Error:
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
	v.Reason, v.Faulty, v.Passing, v.Retried, v.Failures = "", false, false, false, 0
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
	kept := m.kept()
	for _, name := range m.names() {
		v := m.entry(name)
		switch {
		case v.Exit != Staying:
			m.leave(v)
		case slices.Contains(kept, name):
		case name == m.Current || slices.Contains(wanted, name):
		case !m.Read:
		case name == m.Served, slices.Contains(m.Unknown, name):
		case m.mayStillServe(v), m.takes() && name > m.Served && slices.Contains(m.Listed, name):
		default:
			m.Superseded = m.Superseded || v.Work == Loading && !v.Postponed && slices.Contains(m.Listed, name)
			if v.Held {
				m.Rejected = append(m.Rejected, name)
			}
			m.remove(v)
		}
	}
}

// mayStillServe reports whether v could become active although a newer version is loading: it is complete here and
// waits for other nodes, or it is loading and another load was given up for a newer version before. Otherwise a node
// would never switch if versions came faster than they load.
func (m *machine) mayStillServe(v *Entry) bool {
	if m.isOld(v.Name) || !slices.Contains(m.Listed, v.Name) {
		return false
	}
	if v.Held {
		return !m.isHeldBehind(v.Name) && !m.Crowded
	}
	return v.Live && v.Complete && v.Work == Resting || m.Superseded && v.Name == m.firstLoading()
}

// firstLoading returns the oldest version that is loading, "" if there is none.
func (m *machine) firstLoading() string {
	for _, v := range m.Entries {
		if !m.isOld(v.Name) && v.Exit == Staying && v.Work == Loading && !v.Postponed {
			return v.Name
		}
	}
	return ""
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

// remove begins the exit of v, or forgets v if there is nothing to undo. While v is being opened, that is not known,
// and remove does nothing.
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

// leave continues an exit: it cancels a load, and deletes what is neither being read nor written.
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
