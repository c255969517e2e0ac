// Package fill decides where a node gets the partitions of a version from: from the source, by a load, or from another node that
// has them (package transfer). It owns the state that this takes for one version, a Run.
//
// Which node has a partition is in the reports that the nodes publish (package gate): before a content is advertised, and while it is loaded. No node
// is asked. Of the nodes that have to hold a partition, one reads it from the source: the first of an order that all nodes compute alike
// (readers), among those that are members. This node loads those of which it is the first reader, and copies the others as soon as another node
// reports them.
//
// When its own load has ended, it waits for the other readers, as long as their reports grow. Partitions of readers that have left, do not load, publish nothing
// new for too long (Times), or whose blocks are refused pass to the next node of the order, and to this
// node in the end: Fill returns them, and the caller begins anew. So a version is never held up by another node, and at
// worst it is read from the source by every node.
//
// Fill runs on the goroutine of the load. It starts a goroutine for the load and a few for copies, and waits for all of them.
package fill
