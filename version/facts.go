package version

import (
	"slices"

	"sequins/internal/content"
	"sequins/version/pin"
)

// Facts are what a node knows of a database when it decides. A zero Input is none. Served, Former entries, failures, verdicts and
// the pin are in the node's STATE.json, so that they outlive a restart; everything else is read from the world again.
type Facts struct {
	// Entries are the inputs that are here, or that this node opens, loads or has failed to load, ascending by name; those of one name in
	// the order in which they were found.
	Entries []Entry
	// Current is the active version. While the database exists its name only increases, unless Pin does not allow it.
	Current content.Input
	// Served is the version that was active before a restart; see Before.
	Served content.Input
	// Likely: it is not known which version was active, and Served has the greatest name on the disk.
	Likely bool
	// Taken is what other nodes serve. If it is newer than what this node serves, it is loaded before newer versions, so that this node
	// serves it with them and can compare newer versions with it.
	Taken content.Input
	// Pin is what people have decided about the versions (pin.File.At), by the last look at the source, or before a restart. It is the only
	// reason to go back to an older version, unless what was served before a restart is lost (see Before).
	Pin pin.File
	// Keep is how many versions stay on the disk and open, with the active one.
	Keep int
	// Source is whether the source has been read. Listed are the inputs in it when it was last read, ascending, one of each name. Versions
	// older than Current may be left out, and those that Pin does not allow are.
	Source Source
	Listed []content.Input
	// Unknown are names of versions of the source that could not be inspected then: nothing follows from their absence in Listed.
	Unknown []string
	// Rejected are inputs that were held when they were judged last, here or by another node, which need not have anything of them any more to judge
	// them by. They are not loaded while they are not judged here, and a newer version is held, too.
	Rejected []content.Input
	// Waiting: other nodes have not yet had time to advertise what they hold, so what was served before the restart is not lost.
	Waiting bool
	// Unrecorded: the node cannot record which version it serves, so that none takes the place of the active one: after a
	// restart an older one would be active. It has no effect while nothing is active, or the pin does not allow what is.
	Unrecorded bool
}

// Source is what is known of the source of a database.
type Source uint8

const (
	// Unasked: the first look at the source has not ended. Only what was served before the restart becomes active until then, or a kept version if
	// the pin does not allow that, or what other nodes serve; nothing is loaded, and nothing removed but what that replaces. Next: Away, Known, Gone.
	Unasked Source = iota
	// Away: the source could not be read since the node started. Next: Known, Gone.
	Away
	// Known: it has been read. It stays so if later looks fail. Next: Gone.
	Known
	// Gone: the database is not in the source any more.
	Gone
)

// Entry is what is known of one input of a version.
type Entry struct {
	content.Input
	Work     Work
	Removal  Removal
	Coverage Coverage
	Verdict  Verdict
	Failure  Failure
	// Complete: this node holds every partition that it owns.
	Complete bool
	// Begun: its load has its turn, and is not cancelled for a newer version before that is active.
	Begun bool
	// Local: files of it may be on this node's disk.
	Local bool
	// Former: it was active, and another version has replaced it.
	Former bool
	// Stalled: it is complete here and has waited for other nodes for long, while nothing was served that the pin allows. They may have
	// failed to load it, or hold it, and be waiting for this node to load an older one. So an older one may be loaded, and the node is ready
	// without this one.
	Stalled bool
}

// IsHere reports whether the input is in the local store or in the set. Otherwise, the entry only asks whether other nodes have it.
func (v Entry) IsHere() bool { return v.Local || v.Coverage > Absent }

// Work is what is being done for a version. A load begins with an action and ends with Loaded.
type Work uint8

const (
	Resting    Work = iota // next: Unopened, Loading
	Unopened               // see Facts.Unopened; next: Resting
	Loading                // a load waits or runs; next: Resting, Cancelling
	Cancelling             // a cancelled load has not stopped yet; next: Resting
)

// Removal is the progress of a version's removal.
type Removal uint8

// The steps of a removal, in order. A version that is not in the set goes from Staying to Closed or Deleting, and one of a database that is
// gone from Staying or Lingering to Closing. If it is wanted again, it is Staying again from Lingering, Idle, Closed and Undeleted.
const (
	Staying   Removal = iota
	Lingering         // readable by name until idle for long enough
	Idle              // it has been idle for long enough; next: Closing
	Closing           // leaving the set, with references left
	Closed            // not in the set; a cancelled load may not have stopped yet
	Deleting          // its files are being deleted; then it is forgotten
	Undeleted         // they could not be; Closed again at the next refresh
)

// Coverage is how much of a version can be read through this node. It goes up and down with the replicas.
type Coverage uint8

const (
	Absent     Coverage = iota // it is not in the set
	Empty                      // it is in the set, and must be closed before it is deleted
	Partial                    // at least one partition can be read, here or from a peer
	Whole                      // every partition is here, or on a node that is known, maybe from earlier
	Replicated                 // every partition has enough replicas to switch to it
)

// Verdict is whether a version keeps the rules of its database. It is made anew when what it is made from changes.
type Verdict uint8

const (
	Unjudged Verdict = iota // that is not known yet; next: Passed, Held
	Passed                  // it may be served; next: Held, Unjudged
	Held                    // it breaks them, and does not become active; an older version may be loaded instead; next: Passed, Unjudged
)

// Failure is the last load of a version that has failed; zero if none has since it was complete, or wanted again while it was removed. If
// its files could not be deleted, Reason says why.
type Failure struct {
	Reason string
	Kind   FailureKind
	// Waits: while it stays, no attempt is made before Retry. Afterwards the failure is kept during the next attempt: a version that has
	// failed once does not keep an older one from being loaded.
	Waits bool
}

// FailureKind is the cause of a failure. Each failure may be followed by one of another kind.
type FailureKind uint8

const (
	Internal FailureKind = iota // something in this node
	Passing                     // the source, the disk or the load's process, so that a retry may succeed
	NoRoom                      // the disk is full: kept and held versions make room
	// Faulty: the version itself, so that a retry cannot succeed unless its files change. Only then may the version that was
	// active before a restart be dropped for an older one.
	Faulty
)

// Status is the state of a version as people see it; see Facts.Status.
type Status string

const (
	Available Status = "AVAILABLE" // in the source, on this node's disk or on other nodes; no load of it was ordered, and nothing can be read
	Building  Status = "BUILDING"  // a load was ordered, and nothing can be read yet
	Prepared  Status = "PREPARED"  // it can be read by name as far as partitions are here or known elsewhere; more may be loading
	Active    Status = "ACTIVE"    // clients are served from it
	Removing  Status = "REMOVING"  // not needed any more: superseded, excluded, or not in the source
	Error     Status = "ERROR"     // its last load has failed, and it is not active; it stays so during the next one
)

// Status returns the state of a version as people see it.
func (f *Facts) Status(v Entry) Status {
	switch {
	case v.Removal != Staying:
		return Removing
	case v.Input == f.Current:
		return Active
	case v.Failure.Reason != "":
		return Error
	case v.Coverage > Absent:
		return Prepared
	case v.Work == Loading:
		return Building
	}
	return Available
}

// Entry returns the entry of an input; false if there is none.
func (f *Facts) Entry(in content.Input) (Entry, bool) {
	if v := f.entry(in); v != nil {
		return *v, true
	}
	return Entry{}, false
}

// entry returns a pointer to an input's entry, or nil. It is invalid after the next Add or forget.
func (f *Facts) entry(in content.Input) *Entry {
	if i := slices.IndexFunc(f.Entries, func(e Entry) bool { return e.Input == in }); i >= 0 {
		return &f.Entries[i]
	}
	return nil
}

// Add returns the entry of an input, which it creates if necessary. The pointer is invalid after the next Add or forget.
func (f *Facts) Add(in content.Input) *Entry {
	if v := f.entry(in); v != nil {
		return v
	}
	i := slices.IndexFunc(f.Entries, func(e Entry) bool { return e.Name > in.Name })
	if i < 0 {
		i = len(f.Entries)
	}
	f.Entries = slices.Insert(f.Entries, i, Entry{Input: in})
	return &f.Entries[i]
}

func (f *Facts) forget(in content.Input) {
	f.Entries = slices.DeleteFunc(f.Entries, func(e Entry) bool { return e.Input == in })
}

// Clone returns a copy of f, the entries of which can be changed without changing f.
func (f *Facts) Clone() Facts {
	c := *f
	c.Entries = slices.Clone(f.Entries)
	return c
}

// Finished reports whether the database is not in the source any more and has no versions left.
func (f *Facts) Finished() bool { return f.Source == Gone && len(f.Entries) == 0 }
