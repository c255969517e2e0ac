// Package cluster owns what a node knows of the others, and what it tells them.
//
// What is told are ephemeral znodes (package zk): this node, with the settings that all have to share and the
// partitioners that it has refuted; each partition that it holds, with the plan that it was loaded by; and its shard id,
// if it has chosen that itself. What is known comes from watching theirs: the members, and for each version that
// the node follows, who holds which partition.
//
// A request passes through Peers: two look-ups in tables that are replaced as a whole when the view changes.
// It never waits for ZooKeeper, and when all of that is gone the last view stays.
//
// A version passes through in five steps. Follow watches its partitions. SetPlan says by which plan this node loads it:
// replicas of other plans do not count from then on. It also divides the partitions among the members (package shard),
// and that division stays: nodes that come and go do not make others load. Owned returns this node's share. Advertise
// tells of each partition that has been loaded, and Missing says when there are enough replicas to switch to the
// version. Forget ends it.
//
// Queries (Owned, Peers, Replicas, Missing, Surplus, Refuted) change nothing; what changes comes with SetPlan,
// Advertise, Withdraw, Refute and Forget, with changes of znodes, and with time (keepDivided).
//
// A division is made anew in two cases: when the members have changed and the version lacks replicas that a
// switch waits for, so that a node lost in the middle of an upgrade does not hold up the others; and, with
// HealAfter, when they have differed for that long, so that the replicas of lost nodes are made up for and new
// nodes take over their share. What a node need not hold any more it keeps until those who have to do.
package cluster
