package version

import (
	"slices"
	"strings"
)

// Status is how far a version has come on this node.
type Status uint8

const (
	// Available: it exists, in the source or on this node's disk, and nothing
	// has been done about it. Then Building; Prepared if its blocks are here
	// already; Error; or Removing.
	Available Status = iota
	// Building: a load has been ordered; its files are being listed and
	// sampled, or it waits for other databases' loads. Nothing of it can be
	// read. Then Prepared, Error or Removing.
	Building
	// Prepared: it is known how it is partitioned, and peers that ask for it
	// by name are answered from the partitions that are here; more may be
	// loading. Then Active, Error or Removing.
	Prepared
	// Active: clients are answered from it. Then Removing.
	Active
	// Removing: superseded or withdrawn. What can be read of it is, by name,
	// until it has been idle for long enough; then it is closed, deleted and
	// forgotten.
	Removing
	// Error: it could not be loaded; Entry.Reason is the cause. Retried at each
	// refresh and at each Retry: then Building, Prepared or Removing. Or Active:
	// the other nodes have it and this one proxies, or it was served before a
	// restart and this node still has a part of it.
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

// Work is what the node does about a version in the background.
type Work uint8

// Work begins with an action (Open, Load) and ends with an event (Seen or
// Absent, LoadEnded).
const (
	Resting    Work = iota
	Opening         // what is here already is being opened
	Loading         // a load waits or runs
	Cancelling      // a load was told to stop and has not stopped yet
)

// Exit is how far a version is on its way out.
type Exit uint8

// The steps of an exit, in order. A version that cannot be read goes from
// Staying to Deleting, or to Waiting if it is still being loaded.
const (
	Staying   Exit = iota
	Lingering      // readable by name until it has been idle for long enough
	Closing        // out of the set, and waiting for the last request to let go
	Waiting        // cannot be read any more; a cancelled load has not stopped yet
	Deleting       // its files are being deleted
)

// Entry is what the machine knows of one version.
type Entry struct {
	Name   string
	Status Status
	// Reason is why the last attempt to load it failed. It stays while it is
	// tried again: a version that has failed once does not stop an older one
	// from being loaded.
	Reason string
	Work   Work
	Exit   Exit
	// Local: there may be files of it on this node's disk.
	Local bool
	// Live: it is in the set, so it has to be closed before it is deleted.
	Live bool
	// Complete: this node has every partition that it should have.
	Complete bool
	// Stale: its blocks are of a plan that is not that of its files in the source. It
	// is not complete and not replicated until a load has planned it anew.
	Stale bool
	// Replicated: every partition has enough replicas, in this node's view.
	Replicated bool
	// Readable: at least one partition can be read, here or from a peer.
	Readable bool
	// Failed: nothing more is tried before the next refresh or Retry.
	Failed bool
	// Retried: a load that ended without completing it has been repeated since
	// the last refresh.
	Retried bool
	// Passing: the last failure may pass by itself. Failures counts those in a row.
	Passing  bool
	Failures int
	// Faulty: the last failure was the fault of the version itself, so that
	// another attempt cannot help unless its files change.
	Faulty bool
	// Reloaded are the partitions that were set aside as corrupt since the last
	// refresh or Retry.
	Reloaded []int
}

// State is what the machine knows of one database. The zero State is that of
// one of which nothing is known yet.
type State struct {
	// Entries are the versions on this node, in ascending order of their names.
	Entries []Entry
	// Current is the version that clients are answered from, or "". While the
	// database exists it only ever grows.
	Current string
	// Served is the version that clients were answered from before a restart.
	// It stays, and nothing older becomes active, unless a newer version is
	// active or nothing of it can be read any more. "" once that is decided.
	Served string
	// Listed are the versions of the source when it was last read, in ascending
	// order. Versions older than Current may be left out.
	Listed []string
	// Looking: the first look at the source has not ended. Only what was served
	// before the restart becomes active until then, and nothing is loaded or
	// removed.
	Looking bool
	// Unknown are versions of the source that could not be looked at then: nothing
	// follows from their absence in Listed.
	Unknown []string
	// Read: the source has been read since the node started.
	Read bool
	// Gone: the database is not in the source any more.
	Gone bool
}

// Entry returns what is known of a version; false if there is nothing.
func (s State) Entry(name string) (Entry, bool) {
	i, found := s.find(name)
	if !found {
		return Entry{}, false
	}
	return s.Entries[i], true
}

// Finished reports whether the database has gone and nothing is left of it.
func (s State) Finished() bool { return s.Gone && len(s.Entries) == 0 }

func (s State) find(name string) (int, bool) {
	return slices.BinarySearchFunc(s.Entries, name, func(e Entry, name string) int {
		return strings.Compare(e.Name, name)
	})
}

// clone returns a copy that can be changed without a trace in s.
func (s State) clone() State {
	s.Entries = slices.Clone(s.Entries)
	for i := range s.Entries {
		e := &s.Entries[i]
		e.Reloaded = slices.Clone(e.Reloaded)
	}
	s.Listed, s.Unknown = slices.Clone(s.Listed), slices.Clone(s.Unknown)
	return s
}
