package version

import (
	"slices"

	"sequins/internal/content"
)

// decide compares the state with the desired state, and orders the actions that are missing.
func (m *machine) decide() {
	if m.Gone {
		m.removeAll()
		return
	}
	m.activate()
	m.judgeTaken()
	if m.Looking {
		return
	}
	wanted := m.wanted()
	for _, in := range wanted {
		v := m.add(in)
		m.revive(v)
		m.load(v)
	}
	for _, in := range []content.Input{m.Current, m.Served} {
		// The current version may lack partitions: the switch only waited for the cluster, or a block is corrupt.
		if v := m.entry(in); v != nil && v.Live {
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
	m.actions = append(m.actions, Action{Op: Activate, Input: v.Input, Back: v.Name < m.Current.Name})
	m.Current, m.Served, v.Status = v.Input, content.Input{}, Active
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
		case m.isBehind(v.Input) || m.Unrecorded && v.Input != m.Served && m.Pin.Allows(m.Current.Name) || !m.isReady(v):
		case m.Pin.Allows(v.Name):
			return v
		case v.Input == m.Served && !m.isOpening():
			served = v
		}
	}
	return served
}

// isOpening reports whether a version is being opened that the pin allows: it may be ready in a moment.
func (m *machine) isOpening() bool {
	return slices.ContainsFunc(m.Entries, func(v Entry) bool {
		return v.Work == Opening && v.Input != m.Served && m.Pin.Allows(v.Name)
	})
}

// isBehind reports whether the node does not switch to an input because of what is served, or was before a restart: it is
// served, or has a lesser name, or is another input of the same name than the source lists.
func (m *machine) isBehind(in content.Input) bool {
	floor := m.Floor()
	other := in.Name == floor.Name && in != floor && !slices.Contains(m.Listed, in)
	return in == m.Current || in.Name < floor.Name || other && !m.isLikely(in)
}

// isOld reports whether an input is active, or has a lesser name than what is, if the pin allows that. An input that is only
// behind what was served before a restart is not old: it is needed if that is dropped.
func (m *machine) isOld(in content.Input) bool {
	return in == m.Current || in.Name < m.Current.Name && m.Pin.Allows(m.Current.Name)
}

// isLikely reports whether an input may be what was served before a restart: one of several with the greatest name on the disk.
func (m *machine) isLikely(in content.Input) bool {
	v := m.entry(in)
	return m.Likely && in.Name == m.Served.Name && v != nil && v.Complete
}

func (m *machine) isReady(v *Entry) bool {
	return v.Live && v.Exit == Staying && (v.Replicated && !v.Held && m.mayServe(v) || m.mustServe(v) || m.mayReturn(v))
}

// mayServe reports whether clients may be answered from v once it is ready: it
// is in the source, or the source cannot be read, or it was served before a
// restart, is served by other nodes, or is kept. A kept version need not wait for the
// first listing of the source if the pin does not allow what was served.
func (m *machine) mayServe(v *Entry) bool {
	early := m.Served.Name != "" && !m.Pin.Allows(m.Served.Name)
	return !m.Read && !m.Looking || v.Input == m.Served || v.Input == m.Taken || m.isLikely(v.Input) || slices.Contains(m.Listed, v.Input) ||
		(!m.Looking || early) && m.isKept(v)
}

// mustServe reports whether v was active before a restart and is served again although the cluster lacks partitions
// of it: the node did that before, too, and other nodes have had time to advertise theirs. A version of which that is
// only likely has to be complete here, or to have failed to become so.
func (m *machine) mustServe(v *Entry) bool {
	if v.Input != m.Served || !v.Readable || m.Likely && (v.Held || v.Unjudged) {
		return false
	}
	return v.Failed || !m.Waiting && (!m.Likely || v.Complete)
}

// judgeServed drops the version that was active before a restart if nothing of it can be read and that cannot change:
// it is not in the source any more, or it is faulty itself. An error of the source or the disk is no reason to drop it.
// What was only likely served is dropped if a gate holds it.
func (m *machine) judgeServed() {
	v := m.entry(m.Served)
	switch {
	case m.Current.Name != "", m.Likely && v != nil && v.Held:
		m.Served = content.Input{}
	case v != nil && (v.Work != Resting || v.Readable):
	case v != nil && v.Failed && v.Faulty, m.Read && !m.Waiting && (m.isFaulty(m.Served.Name) || m.isGone(m.Served.Name) && m.hasAnother()):
		m.Served = content.Input{}
	}
}

// isGone reports whether a version is not in the source any more.
func (m *machine) isGone(name string) bool {
	return !slices.ContainsFunc(m.Listed, func(in content.Input) bool { return in.Name == name }) && !slices.Contains(m.Unknown, name)
}

// hasAnother reports whether a version other than Served may be served. While there is none, nothing is won by
// dropping Served, and other nodes may come back with it.
func (m *machine) hasAnother() bool {
	return len(m.Listed) > 0 || slices.ContainsFunc(m.Entries, func(v Entry) bool {
		return v.Input != m.Served && v.Live && v.Exit == Staying
	})
}

// isFaulty reports whether the input that the source lists of a version is faulty itself.
func (m *machine) isFaulty(name string) bool {
	return slices.ContainsFunc(m.Listed, func(in content.Input) bool {
		v := m.entry(in)
		return in.Name == name && v != nil && v.Failed && v.Faulty
	})
}

// wanted returns the inputs that should be loaded, newest first: the newest of the source that has neither failed nor
// is held, if it is newer than the current one, and those newer ones that are retried, or held: of these only the
// newest, and none when the disk is full, so that held versions do not keep others from being loaded. What other nodes
// serve comes before all of them.
func (m *machine) wanted() []content.Input {
	if m.takes() {
		return []content.Input{m.Taken}
	}
	var wanted []content.Input
	for _, in := range slices.Backward(m.Listed) {
		if m.isBehind(in) {
			break
		}
		v := m.entry(in)
		held := v != nil && v.Held && v.Exit == Staying
		if (held || slices.Contains(m.Rejected, in)) && (m.isHeldBehind(in.Name) || m.Crowded && len(wanted) > 0) {
			continue
		}
		wanted = append(wanted, in)
		if v == nil || v.Reason == "" && !held {
			break
		}
	}
	return wanted
}

// judgeTaken forgets what other nodes served if this node serves it or something newer, or if it will not: then nothing is
// gained by waiting for it.
func (m *machine) judgeTaken() {
	v := m.entry(m.Taken)
	if m.Taken.Name <= m.Current.Name || !m.Pin.Allows(m.Taken.Name) || v != nil && (v.Failed || v.Held) {
		m.Taken = content.Input{}
	}
}

// takes reports whether what other nodes serve is loaded before newer versions. Once it is here, it only waits for other
// nodes, which may have gone on, so that newer ones do not wait for it.
func (m *machine) takes() bool {
	v := m.entry(m.Taken)
	return m.Taken.Name != "" && (v == nil || !v.Complete)
}

// isHeldBehind reports whether a version newer than name is held, too.
func (m *machine) isHeldBehind(name string) bool {
	return slices.ContainsFunc(m.Entries, func(v Entry) bool {
		return v.Name > name && v.Held && v.Exit == Staying && slices.Contains(m.Listed, v.Input)
	})
}

// revive ends the removal of v, which is wanted again, unless it is being closed or deleted: then it is loaded after
// that.
func (m *machine) revive(v *Entry) {
	switch {
	case v.Exit == Lingering:
		v.Status = Prepared
		m.act(Revive, v.Input)
	case v.Exit == Waiting, v.Exit == Deleting && v.Failed:
		v.Status, v.Readable = Available, false
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
	m.act(Load, v.Input)
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
// active, and everything does if that is not known.
func (m *machine) removeOthers(wanted []content.Input) {
	kept := m.kept()
	for _, in := range m.inputs() {
		v := m.entry(in)
		switch {
		case v.Exit != Staying:
			m.leave(v)
		case slices.Contains(kept, in):
		case in == m.Current || slices.Contains(wanted, in):
		case !m.Read:
		case in == m.Served, in == m.Taken, slices.Contains(m.Unknown, in.Name), m.Likely && m.Current.Name == "":
		case m.mayStillServe(v), m.takes() && in.Name >= m.Taken.Name && slices.Contains(m.Listed, in):
		default:
			m.Superseded = m.Superseded || v.Work == Loading && !v.Postponed && slices.Contains(m.Listed, in)
			if v.Held {
				m.Rejected = append(m.Rejected, in)
			}
			m.remove(v)
		}
	}
}

// mayStillServe reports whether v could become active although a newer version is loading: it is complete here and
// waits for other nodes, or it is loading and another load was given up for a newer version before. Otherwise a node
// would never switch if versions came faster than they load.
func (m *machine) mayStillServe(v *Entry) bool {
	if m.isOld(v.Input) || !slices.Contains(m.Listed, v.Input) {
		return false
	}
	if v.Held {
		return !m.isHeldBehind(v.Name) && !m.Crowded
	}
	return v.Live && v.Complete && v.Work == Resting || m.Superseded && v.Input == m.firstLoading()
}

// firstLoading returns the oldest version that is loading; zero if there is none.
func (m *machine) firstLoading() content.Input {
	for _, v := range m.Entries {
		if !m.isOld(v.Input) && v.Exit == Staying && v.Work == Loading && !v.Postponed {
			return v.Input
		}
	}
	return content.Input{}
}

func (m *machine) removeAll() {
	for _, in := range m.inputs() {
		v := m.entry(in)
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
		m.act(Retire, v.Input)
	case v.Local:
		v.Status, v.Exit = Removing, Waiting
	default:
		m.forget(v.Input)
		return
	}
	m.leave(v)
}

// leave continues an exit: it cancels a load, and deletes what is neither being read nor written.
func (m *machine) leave(v *Entry) {
	if v.Work == Loading {
		v.Work = Cancelling
		m.act(Cancel, v.Input)
	}
	if v.Exit == Waiting && v.Work == Resting {
		v.Exit = Deleting
		m.act(Delete, v.Input)
	}
}

func (m *machine) close(v *Entry) {
	v.Exit = Closing
	m.act(Close, v.Input)
}

func (m *machine) inputs() []content.Input {
	all := make([]content.Input, len(m.Entries))
	for i, v := range m.Entries {
		all[i] = v.Input
	}
	return all
}
