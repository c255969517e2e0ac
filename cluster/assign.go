package cluster

import (
	"slices"
	"time"

	"sequins/internal/sleep"
	"sequins/shard"
	"sequins/version"
	"sequins/zk"
)

// Owned implements version.Following. Nodes that assign partitions to the same members get the same result.
func (f *following) Owned(partitions int) []int {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	switch {
	case f.c.away.Load():
		return nil
	case f.assignment != nil && len(f.assignment.owners) == partitions:
		return f.assignment.owned
	}
	return f.assign(f.c.members.Load(), partitions).owned
}

// Owners implements version.Following.
func (f *following) Owners() (byPartition [][]string, self string) {
	f.c.mu.Lock()
	a := f.assignment
	f.c.mu.Unlock()
	if a == nil {
		return nil, f.c.o.Addr
	}
	ofShard := make(map[string][]string)
	for _, m := range f.c.members.Load().all { // ordered
		if m.Settings != nil { // nodes of upstream's kind give no blocks
			ofShard[m.ShardID] = append(ofShard[m.ShardID], m.Addr)
		}
	}
	byPartition = make([][]string, len(a.owners))
	for p, shards := range a.owners {
		for _, id := range shards {
			byPartition[p] = append(byPartition[p], ofShard[id]...)
		}
	}
	return byPartition, f.c.o.Addr
}

// assign assigns the partitions to members.
func (f *following) assign(ms *membership, partitions int) *assignment {
	c, s := f.c, f.c.o.Settings
	a := &assignment{of: ms, made: time.Now(),
		owners: shard.Assign(ms.rule, ms.shards, partitions, s.Replication, f.db)}
	if c.o.Router {
		return a
	}
	for p, shards := range a.owners {
		if slices.Contains(shards, c.ShardID()) {
			a.owned = append(a.owned, p)
		}
	}
	return a
}

// keepAssigned periodically checks whether partitions have to be assigned again,
// until Leave.
func (c *Cluster) keepAssigned() {
	for sleep.For(c.ctx, min(max(c.o.Converge/10, 10*time.Millisecond), time.Second)) == nil {
		c.assignAgain(time.Now())
	}
}

// assignAgain renews outdated assignments, and forgets nodes that have vanished long ago. It waits until the members have been
// stable for a while, so that a restart of one node does not make others load.
func (c *Cluster) assignAgain(now time.Time) {
	ms := c.members.Load()
	if now.Sub(ms.since) < c.o.Converge {
		return
	}
	listed := c.Status().State == zk.Connected // otherwise they may be back
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.versions {
		if listed {
			w.forgetVanished(ms, now)
		}
		for _, f := range w.inputs {
			f.assignAgain(ms, now)
		}
	}
}

// forgetVanished drops the advertisements that have vanished for too long. c.mu is held.
func (w *watched) forgetVanished(ms *membership, now time.Time) {
	n := len(w.advertisements)
	first := n
	for first > 0 && !w.advertisements[first-1].vanished.IsZero() { // they are the last ones
		first--
	}
	kept := slices.DeleteFunc(w.advertisements[first:], func(a advertisement) bool {
		longest := missedFor
		if _, member := ms.byAddr[a.addr]; member {
			longest = withdrawnFor
		}
		return now.Sub(a.vanished) >= longest
	})
	if first+len(kept) < n {
		w.advertisements = w.advertisements[:first+len(kept)]
		for _, f := range w.inputs {
			f.updateView()
		}
	}
}

// assignAgain renews the assignment if it is outdated. c.mu is held.
func (f *following) assignAgain(ms *membership, now time.Time) {
	if f.assignment == nil {
		return
	}
	f.assess() // includes what this node has advertised
	if !f.history.stable && now.Sub(f.assignment.made) >= f.c.o.Converge {
		f.history.stable = true
		f.c.changed(f.db) // Surplus may have changed
	}
	if !f.outdated(ms, now) {
		return
	}
	old := f.assignment
	f.assignment = f.assign(ms, len(old.owners))
	f.history.stable = false
	if !slices.Equal(old.owned, f.assignment.owned) {
		f.c.log.Info("partitions assigned again", "db", f.db, "version", f.version, "nodes", len(ms.all),
			"partitions", len(f.assignment.owned), "before", len(old.owned))
		f.c.changed(f.db)
	}
}

// outdated reports whether partitions should be assigned again: because the members or the rule have changed, and there are
// too few reachable replicas for a switch, or both have stayed the same for HealAfter since.
func (f *following) outdated(ms *membership, now time.Time) bool {
	if f.assignment.of.dividesLike(ms) {
		return false
	}
	healAfter := f.c.o.HealAfter
	return !f.history.sufficed && f.short() || healAfter > 0 && now.Sub(ms.since) >= healAfter
}

// Switched implements version.Following.
func (f *following) Switched() {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	f.history.switched = true
	f.assess()
	sleep.Wake(f.c.switched)
}

// assess records that all partitions of a content that this node has switched to
// have enough replicas. That is never reset. c.mu is held.
func (f *following) assess() {
	if f.assignment != nil && f.history.switched && !f.history.sufficed {
		f.history.sufficed = !f.short()
	}
}

// short reports whether a partition has too few replicas for a switch. c.mu is held.
func (f *following) short() bool {
	held := make([]bool, len(f.assignment.owners))
	for p := range held {
		held[p] = f.advertised[p]
	}
	return len(version.Missing(f, held, f.c.o.MinReplication)) > 0
}

// Surplus implements version.Following. It counts only replicas that the assignment
// asks for, and only once the assignment has been stable for Converge, so that two
// nodes do not each rely on the other to keep a partition.
func (f *following) Surplus(held []bool) []int {
	c := f.c
	if c.o.HealAfter <= 0 {
		return nil
	}
	c.mu.Lock()
	a, stable := f.assignment, f.history.stable
	c.mu.Unlock()
	ms := c.members.Load()
	if !stable || len(a.owners) != len(held) || !a.of.dividesLike(ms) {
		return nil
	}
	var surplus []int
	for p, here := range held {
		lacks := func(owner string) bool {
			return !slices.ContainsFunc(f.view.Load().of(p).advertising(), func(addr string) bool { return ms.byAddr[addr].ShardID == owner })
		}
		if owners := a.owners[p]; here && len(owners) > 0 && !slices.Contains(owners, c.ShardID()) && !slices.ContainsFunc(owners, lacks) {
			surplus = append(surplus, p)
		}
	}
	return surplus
}
