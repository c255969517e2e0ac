// Package version owns what a database's versions are on this node: the rules
// by which they come and go, and the set of those that can be read.
//
// A version goes one way through here. The db's goroutine in package node
// hears of something (the source was listed, a partition is ready, a load has
// ended), puts it as an Event to Next and gets back the new State and the
// Actions to carry out. Next is a pure function: it knows no clock, disk or
// network, so all rules can be read in machine.go and decide.go and are tested
// by tables and random walks.
//
// A request goes another way and meets the first in one atomic pointer:
// Set.Acquire returns a Handle on the current version, Handle.Get reads a key
// from a block of it, Handle.Release lets go. Acquiring counts a reference in
// the version itself and allocates nothing. A version that has left the set is
// closed by whoever retired it (Version.Close), after its last reference.
//
// What a node knows of other nodes comes through Cluster; Solo is a cluster of
// one, so that a single node is no special case.
package version
