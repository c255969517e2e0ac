package cluster

import (
	"slices"
	"time"

	"sequins/shard"
)

// assignment says which shards have to hold the partitions of a content. It is immutable.
type assignment struct {
	owners  [][]string // shard ids by partition
	owned   []int      // by this node, ascending
	members uint64     // signature of the membership that it was made for
	holders [][]string // shard ids that held each partition then
	made    time.Time
}

// Owned implements version.Following. Nodes that assign partitions to the same
// members get the same result, whatever other nodes held at the time: see
// shard.Balanced.
func (f *following) Owned(held []bool) []int {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	if f.assignment != nil && len(f.assignment.owners) == len(held) {
		return f.assignment.owned
	}
	return f.assign(f.c.members.Load(), held).owned
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
		ofShard[m.ShardID] = append(ofShard[m.ShardID], m.Addr)
	}
	byPartition = make([][]string, len(a.owners))
	for p, shards := range a.owners {
		for _, id := range shards {
			byPartition[p] = append(byPartition[p], ofShard[id]...)
		}
	}
	return byPartition, f.c.o.Addr
}

// holders returns the shard ids that hold each partition: those that advertise
// it, and this node's where held is true.
func (f *following) holders(held []bool) [][]string {
	ms := f.c.members.Load()
	all := make([][]string, len(held))
	for p := range all {
		for _, addr := range f.replicas(p) {
			if id, known := ms.shardOf[addr]; known {
				all[p] = append(all[p], id)
			}
		}
		if held[p] {
			all[p] = append(all[p], f.c.ShardID())
		}
	}
	return all
}

// assign assigns the partitions to members. c.mu is held.
func (f *following) assign(ms *membership, held []bool) *assignment {
	c, holders := f.c, f.holders(held)
	s := c.o.Settings
	a := &assignment{members: ms.signature, made: time.Now(), holders: holders,
		owners: shard.Assign(s.Assignment, ms.shards(), len(held), s.Replication, f.db, holders)}
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
	period := c.o.Converge
	if c.o.HealAfter > 0 {
		period = min(period, c.o.HealAfter)
	}
	ticker := time.NewTicker(min(max(period/10, 10*time.Millisecond), time.Second))
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			c.assignAgain(time.Now())
		case <-c.ctx.Done():
			return
		}
	}
}

// assignAgain renews outdated assignments. It waits until the members have been
// stable for a while, so that a restart of one node does not make others load.
func (c *Cluster) assignAgain(now time.Time) {
	ms := c.members.Load()
	if now.Sub(ms.since) < c.o.Converge {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.versions {
		for _, f := range w.inputs {
			f.assignAgain(ms, now)
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
		f.c.changed() // Surplus may have changed
	}
	if !f.outdated(ms, now) {
		return
	}
	old := f.assignment
	f.assignment = f.assign(ms, f.heldHere())
	if f.assignment.members == old.members && slices.EqualFunc(f.assignment.owners, old.owners, slices.Equal) {
		f.assignment.made = old.made // Surplus need not wait again
	} else {
		f.history.lackingSince, f.history.stable = time.Time{}, false
	}
	if !slices.Equal(old.owned, f.assignment.owned) {
		f.c.log.Info("partitions assigned again", "db", f.db, "version", f.version, "nodes", len(ms.all),
			"partitions", len(f.assignment.owned), "before", len(old.owned))
		f.c.changed()
	}
}

// heldHere reports for each assigned partition whether this node holds it. c.mu is held.
func (f *following) heldHere() []bool {
	held := make([]bool, len(f.assignment.owners))
	for p := range held {
		held[p] = f.held[p]
	}
	return held
}

// outdated reports whether partitions should be assigned again: because there are too few reachable
// replicas for a switch, or because members have differed or replicas have been missing for
// HealAfter.
//
// Without enough replicas, who holds them matters, too: nodes that start together
// with blocks that were assigned among other members learn only later what the others
// hold. When all know the same, they assign partitions alike, and each partition
// has an owner.
func (f *following) outdated(ms *membership, now time.Time) bool {
	others, healAfter := f.assignment.members != ms.signature, f.c.o.HealAfter
	if !f.history.sufficed && f.short() {
		return others || !slices.EqualFunc(f.assignment.holders, f.holders(f.heldHere()), slices.Equal)
	}
	if healAfter <= 0 {
		return false
	}
	if !f.below(func(p int) int { return len(f.assignment.owners[p]) }) { // as configured
		f.history.lackingSince = time.Time{}
	} else if f.history.lackingSince.IsZero() {
		f.history.lackingSince = now
	}
	if others {
		return now.Sub(ms.since) >= healAfter
	}
	return !f.history.lackingSince.IsZero() && now.Sub(f.history.lackingSince) >= healAfter
}

// Switched implements version.Following.
func (f *following) Switched() {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	f.history.switched = true
	f.assess()
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
	return f.below(func(int) int { return f.c.o.MinReplication })
}

// below reports whether an assigned partition has fewer replicas than enough returns for it. c.mu is held.
func (f *following) below(enough func(partition int) int) bool {
	for p := range f.assignment.owners {
		n := f.Replicas(p)
		if f.advertised[p] {
			n++
		}
		if n < enough(p) {
			return true
		}
	}
	return false
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
	if !stable || len(a.owners) != len(held) || a.members != ms.signature {
		return nil
	}
	var surplus []int
	for p, here := range held {
		lacks := func(owner string) bool {
			return !slices.ContainsFunc(f.replicas(p), func(addr string) bool { return ms.shardOf[addr] == owner })
		}
		if owners := a.owners[p]; here && len(owners) > 0 && !slices.Contains(owners, c.ShardID()) && !slices.ContainsFunc(owners, lacks) {
			surplus = append(surplus, p)
		}
	}
	return surplus
}
