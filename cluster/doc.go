// Package cluster owns what a node knows of the others, and what it tells them.
//
// What is told are ephemeral znodes (package zk): this node, with the settings that all have to share, and each
// partition that it holds. What is known comes from watching theirs: the members, and for each version that
// the node follows, who holds which partition.
//
// A request passes through Peers: two look-ups in tables that are replaced as a whole when the view changes.
// It never waits for ZooKeeper, and when all of that is gone the last view stays.
//
// A version passes through in four steps. Follow watches its partitions. Owned divides them among the members
// (package shard) the first time it is asked, and that division stays: nodes that come and go do not make
// others load. Advertise tells of each partition that has been loaded, and Missing says when there are enough
// replicas to switch to the version. Forget ends it.
//
// A division is made anew in two cases: when the members have changed and the version lacks replicas that a
// switch waits for, so that a node lost in the middle of an upgrade does not hold up the others; and, with
// HealAfter, when they have differed for that long, so that the replicas of lost nodes are made up for and new
// nodes take over their share. What a node need not hold any more it keeps until those who have to do.
package cluster
