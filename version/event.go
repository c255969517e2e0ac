package version

import (
	"fmt"

	"sequins/internal/content"
)

// Event is something that has happened to a database; see Next.
type Event interface{ event() }

type (
	// Start is the first event: what is on the disk. The source is being listed;
	// Listed or Unlisted tells how that has ended.
	Start struct {
		Local  []content.Input // with files in the local store
		Served content.Input   // from which clients were answered before a restart, if known
		Likely bool            // that cannot be read, and it is the greatest on the disk
		// Taken is what other nodes serve, if its name is greater than that of Served.
		Taken content.Input
		// Waiting: other nodes have not yet had time to advertise what they hold.
		// Waited follows.
		Waiting bool
		Pin     Pin // the last one that was read
		Keep    int // see State
		// Held are inputs that were held before a restart, and Former those that were active before Served.
		Held, Former []content.Input
		// Failures are inputs whose last load has failed before a restart.
		Failures []Failure
	}
	// Waited says that other nodes have had time to advertise what they hold.
	Waited struct{}
	// Surveyed says that the cluster has changed: what was served before a restart
	// may be readable now.
	Surveyed struct{}
	// Listed says that the source was read. A later look that could not read the
	// source is no event.
	Listed struct {
		Inputs []content.Input // ascending, one of each name; versions that are not complete are left out
		// Unknown are names of versions that could not be inspected. They are not
		// loaded, and not removed either.
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
	Absent struct{ Input content.Input }
	// Planned reports that a load knows the version's partitioning.
	Planned struct {
		Input   content.Input
		Changed bool // differs from the version in the set
	}
	// Seen tells how much of a version is there. It answers Open, Prepare and
	// SetAside, and comes whenever a partition has been published or the
	// cluster has changed.
	Seen struct {
		Input      content.Input
		Complete   bool // this node holds every partition that it owns
		Replicated bool // every partition has enough replicas
		Readable   bool // at least one partition can be read, here or from a peer
		Whole      bool // every partition is here, or on a peer that is known, maybe from earlier
		// Held: it breaks the rules of the database (package gate). It is Replicated only if it has passed.
		Held bool
		// Unjudged: it is not known yet whether it keeps them.
		Unjudged bool
	}
	// LoadEnded reports that a load has succeeded, was cancelled, or has failed
	// with Err. The last Seen precedes it.
	LoadEnded struct {
		Input content.Input
		Err   string
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
		Input     content.Input
		Partition int
	}

	// Idle reports that a retired version has not been requested for long enough.
	Idle struct{ Input content.Input }
	// Closed answers Close: the last reference was released.
	Closed struct{ Input content.Input }
	// Deleted answers Delete. Err is why files could not be deleted, or "".
	Deleted struct {
		Input content.Input
		Err   string
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
	Input     content.Input
	Partition int  // for SetAside
	Back      bool // for Activate: the version is older than the current one, which the pin does not allow
}

// String returns the action, as in "load 2026-01-31".
func (a Action) String() string {
	if a.Op == SetAside {
		return fmt.Sprintf("%s %s/%d", a.Op, a.Input.Name, a.Partition)
	}
	if a.Back {
		return a.Op.String() + " " + a.Input.Name + " back"
	}
	return a.Op.String() + " " + a.Input.Name
}
