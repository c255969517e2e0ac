package version

import "fmt"

// An Event is something that has happened to a database; see Next.
type Event interface{ event() }

type (
	// Start is the first event: what is on the disk. The source is being listed;
	// Listed or Unlisted tells how that has ended.
	Start struct {
		Local  []string // versions with files in the local store
		Served string   // the version that clients were answered from before a restart, if known
	}
	// Listed says that the source was read. A later look that could not read the
	// source is no event.
	Listed struct {
		Versions []string // ascending; those that do not exist yet are left out
		// Unknown are versions of the source that could not be looked at. They are
		// not loaded, and not removed either.
		Unknown []string
		// Relook: this is not a refresh, so what has failed is not tried again.
		Relook bool
	}
	// Unlisted says that the first look at the source has failed, or has not
	// found the database.
	Unlisted struct{}
	// Gone says that the database is not in the source any more.
	Gone struct{}

	// Absent answers Open: there is nothing of the version to be opened.
	Absent struct{ Version string }
	// Planned says that a load has found out how its version is partitioned.
	Planned struct {
		Version string
		Changed bool // not as it was when the version was put into the set
	}
	// Changed says that the files of a version in the source are not those of the
	// plan by which this node holds it, or is loading it.
	Changed struct{ Version string }
	// Seen tells how much of a version is there. It answers Open, Prepare and
	// SetAside, and comes whenever a partition has been published or the
	// cluster has changed.
	Seen struct {
		Version    string
		Complete   bool // this node has every partition it should have
		Replicated bool // every partition has enough replicas
		Readable   bool // at least one partition can be read, here or from a peer
	}
	// LoadEnded says that a load has stopped: because it is done, cancelled, or
	// has failed with Err. The last Seen has come before it.
	LoadEnded struct {
		Version string
		Err     string
		// Faulty: the version itself is at fault (its files are damaged, or
		// gone), not the source, the disk or this node. Only then may a version
		// that was served before a restart be given up for an older one.
		Faulty bool
		// Passing: the source, the disk or the process of the load failed, and
		// another attempt may succeed.
		Passing bool
		// Outdated: what this node has to hold has changed since the load began.
		Outdated bool
	}
	// Corrupted says that a block of a version is damaged.
	Corrupted struct {
		Version   string
		Partition int
	}

	// Idle says that nobody has asked for a retired version for long enough.
	Idle struct{ Version string }
	// Closed answers Close: the last request has let go.
	Closed struct{ Version string }
	// Deleted answers Delete. Err is why files are left, "" if none are.
	Deleted struct {
		Version string
		Err     string
	}
)

func (Start) event()     {}
func (Listed) event()    {}
func (Unlisted) event()  {}
func (Gone) event()      {}
func (Absent) event()    {}
func (Planned) event()   {}
func (Changed) event()   {}
func (Seen) event()      {}
func (LoadEnded) event() {}
func (Corrupted) event() {}
func (Idle) event()      {}
func (Closed) event()    {}
func (Deleted) event()   {}

// Op is what an Action does.
type Op uint8

const (
	// Open opens every good block of a version that is on the disk, or, where
	// there is none, finds out whether the cluster has it, without loading
	// anything. Answered by Seen or Absent.
	Open Op = iota
	// Load loads the partitions that are missing. First comes Planned, and in
	// the end always LoadEnded.
	Load
	// Prepare puts a planned version into the set, to be read by name, in the
	// place of one whose files have changed if there is one. Answered by Seen.
	Prepare
	// Activate makes a version the current one.
	Activate
	// SetAside puts a corrupt block out of the way, so that a Load replaces
	// it. It is read from until then. Answered by Seen, which says that the
	// version is not complete.
	SetAside
	// Cancel stops a load; LoadEnded comes as ever.
	Cancel
	// Retire begins the wait for a version to become idle. Ends with Idle.
	Retire
	// Close takes a version out of the set and closes it after the last
	// request. Ends with Closed.
	Close
	// Delete deletes the files of a version. Answered by Deleted.
	Delete
)

var opNames = [...]string{"open", "load", "prepare", "activate", "set aside", "cancel", "retire", "close", "delete"}

// String returns the name of o.
func (o Op) String() string {
	if int(o) < len(opNames) {
		return opNames[o]
	}
	return "unknown"
}

// Action is something that the node has to do, in the order in which Next
// returned it.
type Action struct {
	Op        Op
	Version   string
	Partition int // of SetAside
}

// String returns the action as in "load 2026-01-31".
func (a Action) String() string {
	if a.Op == SetAside {
		return fmt.Sprintf("%s %s/%d", a.Op, a.Version, a.Partition)
	}
	return a.Op.String() + " " + a.Version
}
