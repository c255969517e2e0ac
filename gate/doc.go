// Package gate decides whether a version of a database may be served: it compares figures of the version with the rules
// of the database, so that a batch job that has failed quietly does not reach the readers.
//
// A version passes through in four steps. When the partitions of this node are loaded, Measure reads the figures of
// their blocks, and looks a sample of the keys of the version that is served up in them. A Report of the figures is
// published to the other nodes; until the version has passed, the node advertises none of its partitions, so that no
// other node can switch to it. As soon as every partition is in the report of some node, each node compares the sums
// (Rules.Compare). Judge combines the result with the reports of the other nodes: a version that any node holds is
// held on all. What was held or served is recorded over restarts (Record).
//
// Reports are opaque to package cluster. Which versions there are, and what becomes of one that is held, is decided by
// package version; package node carries it out. Nothing here starts a goroutine or reads a clock.
package gate
