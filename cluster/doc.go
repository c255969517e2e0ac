// Package cluster owns the node's view of the other nodes, and what it publishes to them.
//
// A node publishes ephemeral znodes (package zk): the node itself, with the settings that must be the same on all nodes
// and the partitioners it has refuted; each partition it holds, with the plan by which it was loaded; and its shard id
// if it has chosen that itself. It watches the znodes of the others: the members and, for each version that it follows,
// which node holds which partition.
//
// A request calls Peers, which reads a table that is replaced as a whole when the view changes. It never waits for
// ZooKeeper, and without ZooKeeper the last view stays.
//
// A version passes through five steps. Follow watches its partitions, and returns the object with the methods that
// follow. SetPlan sets the plan by which this node loads the version: replicas by other plans do not count from then on.
// SetPlan also divides the partitions among the members (package shard); the division is kept, so that nodes that join
// or leave do not make others load. Owned returns this node's share. Advertise publishes each loaded partition, and
// Missing reports when there are enough replicas to switch to the version. Stop ends it.
//
// Queries (Owned, Peers, Replicas, OtherPlans, Missing, Surplus, Refuted) change nothing. State changes with SetPlan,
// Advertise, Withdraw, Switched, Refute and Stop, with changes of znodes, and with time (keepDivided).
//
// A version is divided again in two cases: when the members, or who holds what, have changed and the version lacks replicas
// needed for a switch, so that a node lost before the switch does not block the others; and, with HealAfter, when the members have
// differed for that long, so that lost replicas are replaced and new nodes take their share. A node keeps partitions
// that it no longer owns until their new owners hold them.
package cluster
