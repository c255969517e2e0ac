// Package cluster owns the node's view of the other nodes, and what it publishes to them.
//
// A node publishes ephemeral znodes (package zk): the node itself, with the settings that must be the same on all nodes;
// each partition it serves, with the contents of the version that it serves it of; what it reports of a content; and its
// shard id if it has chosen that itself. It watches the znodes of the others: the members and, for each version of which
// it follows an input, which node advertises which partition, and reports what.
//
// A request calls Peers, which reads a table that is replaced as a whole when the view changes. It never waits for
// ZooKeeper, and without ZooKeeper the last view stays.
//
// An input passes through five steps. Follow watches its version, and returns the object with the methods that follow.
// SetDivision makes it a content: replicas of other contents do not count from then on, except those of upstream's nodes,
// which do not name theirs. SetDivision also assigns the partitions to the members (package shard); the assignment is
// kept, so that nodes that join or leave do not make others load. Owned returns this node's share. Advertise publishes
// each loaded partition, and version.Missing reports when there are enough replicas to switch to the content. Stop ends it.
// Several inputs of one version can be followed; a znode lists the contents of all of them.
//
// Queries (Owned, Peers, Replicas, Elsewhere, Reports, Surplus) change nothing. State changes with SetDivision,
// Advertise, Withdraw, Switched, Report and Stop, with changes of znodes, and with time (keepAssigned).
//
// The assignment depends on the members and on the cluster's rule, a persistent znode that the first node creates.
// Partitions are assigned again in two cases: when one of these has changed and replicas needed for a switch are missing, so
// that a node lost before the switch does not block the others; and, with HealAfter, when they have differed for that long, so
// that lost replicas are replaced and new nodes take their share. A node keeps partitions that it no longer owns until their
// new owners hold them.
//
// What the others hold is kept in a file (keepRemembered). A node that starts and does not reach ZooKeeper is away until it has joined: its views are made
// from that file (recall), and nothing is assigned. Then ZooKeeper's take their place, and partitions are assigned (arrive).
package cluster
