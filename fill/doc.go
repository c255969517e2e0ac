// Package fill decides where a node gets the partitions of a version from: from the source, by a load, or from another node that
// has them (package transfer). It owns the state that this takes for one version, a Run.
//
// Of the nodes that have to hold a partition, one reads it from the source: the first of an order that all nodes compute alike
// (readers), among those that are alive. A Run asks the other nodes about once a second what they have and what they are loading. A partition that a node has
// is copied at once. This node loads those of which it is the first reader, and copies the others when their readers have published them.
//
// It waits only for a reader that answers, and whose load advances; when its own load has ended, for at most a
// multiple of the time that took. Partitions whose readers fail, stall, or give blocks that are refused pass to the next node of the order, and to this
// node in the end: Fill returns them, and the caller begins anew. So a version is never held up by another node, and at
// worst it is read from the source by every node.
//
// Fill runs on the goroutine of the load. It starts a goroutine for the load, one for each question, and a few for copies, and waits for all of them.
package fill
