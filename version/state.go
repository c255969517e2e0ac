package version

import (
	"slices"

	"sequins/internal/content"
)

// Status is the state of a version on this node.
type Status uint8

const (
	// Available: it is in the source or on this node's disk, and no work on it
	// has begun. Next: Building, Error, Removing, or, if its blocks are on
	// the disk, Prepared or at once Active.
	Available Status = iota
	// Building: a load was ordered; it lists and samples the files, or waits for
	// other databases' loads. Nothing can be read. Next: Prepared, Error,
	// Removing.
	Building
	// Prepared: the partitioning is known, and requests of peers for it by name
	// are answered from the partitions that are on this node; more may be
	// loading. Next: Active, Error, Removing.
	Prepared
	// Active: clients are served from it. Next: Removing, or Prepared if former
	// versions are kept.
	Active
	// Removing: superseded or not in the source any more. It stays readable by
	// name until it has been idle for long enough; then it is closed, deleted and
	// forgotten. Next, only if it becomes the newest good version of the source
	// again: Prepared if it is still readable; otherwise Available or at once
	// Building.
	Removing
	// Error: loading failed; Entry.Reason is why. It stays so during a Retry. Next:
	// Prepared once it is complete, Removing, or Active if it is complete, if other
	// nodes have it and this one proxies, or if it was active before a restart
	// and this node still has a part of it.
	Error
)

var statusNames = [...]string{"AVAILABLE", "BUILDING", "PREPARED", "ACTIVE", "REMOVING", "ERROR"}

// String returns the name of s in capitals.
func (s Status) String() string {
	if int(s) < len(statusNames) {
		return statusNames[s]
	}
	return "UNKNOWN"
}

// Work is the background work on a version.
type Work uint8

// Each work begins with an action (Open, Load) and ends with an event (Seen or
// Absent, LoadEnded). Next of Resting: Opening, Loading; of Loading: Resting,
// Cancelling; of the others: Resting.
const (
	Resting    Work = iota
	Opening         // blocks on the disk are being opened
	Loading         // a load waits or runs
	Cancelling      // a cancelled load has not stopped yet
)

// Exit is the progress of a version's removal.
type Exit uint8

// The steps of a removal, in order. A version that is not readable goes from
// Staying to Waiting if it is still loading, otherwise to Deleting. Lingering and
// Waiting, and Deleting that has failed, can go back to Staying.
const (
	Staying   Exit = iota
	Lingering      // readable by name until idle for long enough
	Closing        // removed from the set, with references left
	Waiting        // not readable; a cancelled load has not stopped yet
	Deleting       // its files are being deleted
)

// Entry is the state of one input of a version.
type Entry struct {
	content.Input
	Status Status
	// Reason is why the last load failed. It is kept during a retry: a version
	// that has failed once does not keep an older one from being loaded.
	Reason string
	Work   Work
	Exit   Exit
	// Postponed: its load waits for a time at which it may begin.
	Postponed bool
	// Local: files of it may be on this node's disk.
	Local bool
	// Live: it is in the set, and must be closed before it is deleted.
	Live bool
	// Complete: this node holds every partition that it owns.
	Complete bool
	// Replicated: every partition has enough replicas, in this node's view.
	Replicated bool
	// Readable: at least one partition can be read, here or from a peer.
	Readable bool
	// Whole: every partition is here, or on a node that is known, maybe from earlier.
	Whole bool
	// Held: it breaks the rules of the database, so it does not become active. An
	// older version may be loaded instead.
	Held bool
	// Unjudged: it is not known yet whether it keeps the rules of the database.
	Unjudged bool
	// Failed: no attempt is made before the next Retry.
	Failed bool
	// Retried: a load that ended without completing the version was repeated
	// since the last Retry.
	Retried bool
	// Passing: the last failure may be temporary. Failures is the number of
	// consecutive failures.
	Passing  bool
	Failures int
	// Faulty: the last failure was caused by the version itself, so a retry
	// cannot succeed unless its files change.
	Faulty bool
	// Former: it was active, and another version has replaced it.
	Former bool
	// Reloaded are the partitions set aside as corrupt since the last Retry.
	Reloaded []int
}

// Failure is a failed load from before a restart.
type Failure struct {
	content.Input
	Reason   string
	Faulty   bool // see Entry
	Attempts int  // consecutive failures
}

// State is the state of one database. The zero State is that of an unknown
// database. A zero Input is none.
type State struct {
	// Entries are the inputs on this node, ascending by name; those of one name in
	// the order in which they were found.
	Entries []Entry
	// Current is the active version. While the database exists its name only
	// increases, unless Pin does not allow it.
	Current content.Input
	// Pin is what people have decided about the versions, by the last look at the
	// source, or before a restart.
	Pin Pin
	// Keep is how many versions stay on the disk and open, with the active one.
	// Crowded: the disk was full since the last Activate, so none but that one
	// stays.
	Keep    int
	Crowded bool
	// Served is the version that was active before a restart. It is kept, and no
	// older version becomes active, until a newer version is active or nothing of
	// it can be read any more. Zero once that is decided.
	Served content.Input
	// Likely: it is not known which version was active, and Served has the greatest
	// name on the disk.
	Likely bool
	// Taken is what other nodes served when this one started, if its name is greater than
	// that of Served. It is loaded before newer versions, so that this node serves it
	// with them and can compare newer versions with it. Zero once this node serves it or
	// a newer one, or it has failed, is held, or the pin does not allow it.
	Taken content.Input
	// Superseded: a load was given up for a newer version since the last Activate.
	Superseded bool
	// Listed are the inputs in the source when it was last read, ascending, one of each
	// name. Versions older than Current may be left out, and those that Pin does
	// not allow are.
	Listed []content.Input
	// Rejected are inputs of the source that were held, maybe before a restart, and
	// removed for a newer one that is held, too. They are not loaded again while that
	// is so, unless the pin changes.
	Rejected []content.Input
	// Failed are failures from before the restart of inputs that have no entry.
	Failed []Failure
	// Looking: the first look at the source has not ended. Only what was served
	// before the restart becomes active until then, or a kept version if the pin does
	// not allow that, and nothing is loaded or removed.
	Looking bool
	// Waiting: other nodes have not yet had time to advertise what they hold, so what
	// was served before the restart is not lost.
	Waiting bool
	// Unknown are names of versions of the source that could not be inspected then:
	// nothing follows from their absence in Listed.
	Unknown []string
	// Unrecorded: the node cannot record which version it serves, so that none but
	// Served becomes active: after a restart an older one would be. The node sets it
	// when it cannot carry out an Activate, and applies the event anew. It has no effect
	// while the pin does not allow the active one.
	Unrecorded bool
	// Read: the source has been read since the node started.
	Read bool
	// Gone: the database is not in the source any more.
	Gone bool
}

// Entry returns the entry of an input; false if there is none.
func (s State) Entry(in content.Input) (Entry, bool) {
	if i := s.find(in); i >= 0 {
		return s.Entries[i], true
	}
	return Entry{}, false
}

// WasServed reports whether clients are served from an input, or were.
func (s State) WasServed(in content.Input) bool {
	v, _ := s.Entry(in)
	return in == s.Current || in == s.Served || v.Former
}

// Finished reports whether the database is not in the source any more and has no
// versions left.
func (s State) Finished() bool { return s.Gone && len(s.Entries) == 0 }

// Deciding reports whether it is not decided yet whether the version that was active
// before a restart is served again: it is being opened or loaded, it can be read, or
// other nodes may come with it.
func (s State) Deciding() bool {
	if s.Current.Name != "" || s.Served.Name == "" {
		return false
	}
	v, _ := s.Entry(s.Served)
	return s.Looking || s.Waiting || v.Work == Opening || v.Work == Loading || v.Live && v.Readable
}

// find returns the index of an entry; -1 if there is none.
func (s State) find(in content.Input) int {
	return slices.IndexFunc(s.Entries, func(e Entry) bool { return e.Input == in })
}

// clone returns a deep copy of s.
func (s State) clone() State {
	s.Entries = slices.Clone(s.Entries)
	for i := range s.Entries {
		e := &s.Entries[i]
		e.Reloaded = slices.Clone(e.Reloaded)
	}
	s.Pin.Excluded, s.Pin.Approved = slices.Clone(s.Pin.Excluded), slices.Clone(s.Pin.Approved)
	s.Rejected, s.Failed = slices.Clone(s.Rejected), slices.Clone(s.Failed)
	s.Listed, s.Unknown = slices.Clone(s.Listed), slices.Clone(s.Unknown)
	return s
}
