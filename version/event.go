package version

import "fmt"

// Event is something that has happened to a database; see Next.
type Event interface{ event() }

type (
	// Start is the first event: what is on the disk. The source is being listed;
	// Listed or Unlisted tells how that has ended.
	Start struct {
		Local  []string // versions with files in the local store
		Served string   // the version that clients were answered from before a restart, if known
		Likely bool     // the record of it cannot be read, and it is the most likely one
		// Taken: this node has served nothing, and Served is what other nodes serve.
		Taken bool
		// Waiting: other nodes have not yet had time to advertise what they hold.
		// Waited follows.
		Waiting bool
		Pin     Pin // the last one that was read
		Keep    int // see State
		// Held are versions that were held before a restart.
		Held []string
		// Former are versions that were active before a restart, as far as that is known.
		Former []string
		// Foreign are versions that were loaded from another source. Apart from Served, none of them is served before
		// a load has compared it with the source, and none is kept.
		Foreign []string
	}
	// Waited says that other nodes have had time to advertise what they hold.
	Waited struct{}
	// Surveyed says that the cluster has changed: what was served before a restart
	// may be readable now.
	Surveyed struct{}
	// Listed says that the source was read. A later look that could not read the
	// source is no event.
	Listed struct {
		Versions []string // ascending; those that do not exist yet are left out
		// Unknown are versions of the source that could not be looked at. They are
		// not loaded, and not removed either.
		Unknown []string
		// Relook: this is not a refresh, so deletions that failed are not tried again, and
		// other nodes are not asked again for what was served before a restart.
		Relook bool
		Pin    Pin
		Keep   int // see State
	}
	// Unlisted says that the first look at the source has failed, or has not
	// found the database.
	Unlisted struct{}
	// Gone says that the database is not in the source any more.
	Gone struct{}

	// Absent answers Open: nothing of the version can be opened.
	Absent struct{ Version string }
	// Planned reports that a load knows the version's partitioning.
	Planned struct {
		Version string
		Changed bool // differs from the version in the set
	}
	// Seen tells how much of a version is there. It answers Open, Prepare and
	// SetAside, and comes whenever a partition has been published or the
	// cluster has changed.
	Seen struct {
		Version    string
		Complete   bool // this node holds every partition that it owns
		Replicated bool // every partition has enough replicas
		Readable   bool // at least one partition can be read, here or from a peer
		Whole      bool // every partition is here, or on a peer that is known, maybe from earlier
		// Held: it breaks the rules of the database (package gate), here or on another
		// node. It is Replicated only once it has kept them everywhere.
		Held bool
		// Unjudged: it is not known yet whether it keeps them.
		Unjudged bool
	}
	// LoadEnded reports that a load has succeeded, was cancelled, or has failed
	// with Err. The last Seen precedes it.
	LoadEnded struct {
		Version string
		Err     string
		// Faulty: the version itself is faulty (its files are damaged or
		// missing), not the source, the disk or this node. Only then may the
		// version that was active before a restart be dropped for an older one.
		Faulty bool
		// Passing: the source, the disk or the load's process failed, and a retry
		// may succeed.
		Passing bool
		// NoRoom: the disk is full.
		NoRoom bool
		// Outdated: the partitions that this node owns have changed since the
		// load began.
		Outdated bool
	}
	// Corrupted reports that a block of a version is damaged.
	Corrupted struct {
		Version   string
		Partition int
	}

	// Idle reports that a retired version has not been requested for long enough.
	Idle struct{ Version string }
	// Closed answers Close: the last reference was released.
	Closed struct{ Version string }
	// Deleted answers Delete. Err is why files could not be deleted, or "".
	Deleted struct {
		Version string
		Err     string
	}
)

func (Start) event()     {}
func (Waited) event()    {}
func (Surveyed) event()  {}
func (Listed) event()    {}
func (Unlisted) event()  {}
func (Gone) event()      {}
func (Absent) event()    {}
func (Planned) event()   {}
func (Seen) event()      {}
func (LoadEnded) event() {}
func (Corrupted) event() {}
func (Idle) event()      {}
func (Closed) event()    {}
func (Deleted) event()   {}

// Op is the kind of an Action.
type Op uint8

const (
	// Open opens every valid block of a version on the disk or, if there are
	// none, finds out whether the cluster has the version, without loading
	// anything. Answered by Seen or Absent.
	Open Op = iota
	// Load loads the missing partitions. Answered by Planned, if the load gets
	// that far, and finally by LoadEnded.
	Load
	// Prepare adds a planned version to the set, to be read by name. It replaces
	// a version of that name whose files have changed. Answered by Seen.
	Prepare
	// Activate makes a version the current one, which is recorded first: see
	// State.Unrecorded.
	Activate
	// SetAside marks a corrupt block for replacement by a Load. It is read until
	// then. Answered by Seen, with Complete false.
	SetAside
	// Cancel stops a load; LoadEnded follows.
	Cancel
	// Retire waits until a version is idle. Answered by Idle.
	Retire
	// Revive takes Retire back. No Idle follows.
	Revive
	// Close removes a version from the set and closes it after the last reference
	// is released. Answered by Closed.
	Close
	// Delete deletes the files of a version. Answered by Deleted.
	Delete
)

var opNames = [...]string{"open", "load", "prepare", "activate", "set aside", "cancel", "retire", "revive", "close", "delete"}

// String returns the name of o.
func (o Op) String() string {
	if int(o) < len(opNames) {
		return opNames[o]
	}
	return "unknown"
}

// Action is something that the node has to do, in the order returned by Next.
type Action struct {
	Op        Op
	Version   string
	Partition int  // for SetAside
	Back      bool // for Activate: the version is older than the current one, which the pin does not allow
}

// String returns the action, as in "load 2026-01-31".
func (a Action) String() string {
	if a.Op == SetAside {
		return fmt.Sprintf("%s %s/%d", a.Op, a.Version, a.Partition)
	}
	if a.Back {
		return a.Op.String() + " " + a.Version + " back"
	}
	return a.Op.String() + " " + a.Version
}
