package cluster

import (
	"slices"
	"time"

	"sequins/shard"
)

// division assigns the partitions of a version to shards. It is immutable.
type division struct {
	owners  [][]string // shard ids by partition
	owned   []int      // by this node, ascending
	members uint64     // signature of the membership that it was made for
	holders [][]string // shard ids that held each partition then
	made    time.Time
}

// Owned implements version.Following. Nodes that divide a version among the same
// members get the same result, whatever other nodes held at the time: see
// shard.Balanced.
func (f *following) Owned(held []bool) []int {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	if f.division != nil && len(f.division.owners) == len(held) {
		return f.division.owned
	}
	return f.divide(f.c.members.Load(), held).owned
}

// Owners implements version.Following.
func (f *following) Owners() (byPartition [][]string, self string) {
	f.c.mu.Lock()
	d := f.division
	f.c.mu.Unlock()
	if d == nil {
		return nil, f.c.o.Addr
	}
	ofShard := make(map[string][]string)
	for _, m := range f.c.members.Load().all { // ordered
		ofShard[m.ShardID] = append(ofShard[m.ShardID], m.Addr)
	}
	byPartition = make([][]string, len(d.owners))
	for p, shards := range d.owners {
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

// divide assigns the partitions to members. c.mu is held.
func (f *following) divide(ms *membership, held []bool) *division {
	c, holders := f.c, f.holders(held)
	s := c.o.Settings
	d := &division{members: ms.signature, made: time.Now(), holders: holders,
		owners: shard.Assign(s.Assignment, ms.shards(), len(held), s.Replication, f.db, holders)}
	if c.o.Router {
		return d
	}
	for p, shards := range d.owners {
		if slices.Contains(shards, c.ShardID()) && !f.overreplicated(p) {
			d.owned = append(d.owned, p)
		}
	}
	return d
}

// overreplicated reports whether other nodes hold MaxReplication replicas of a
// partition.
func (f *following) overreplicated(partition int) bool {
	limit := f.c.o.MaxReplication
	return limit >= f.c.o.Settings.Replication && !f.advertised[partition] && f.Replicas(partition) >= limit
}

// keepDivided periodically checks whether versions have to be divided again,
// until Leave.
func (c *Cluster) keepDivided() {
	period := c.o.Converge
	if c.o.HealAfter > 0 {
		period = min(period, c.o.HealAfter)
	}
	ticker := time.NewTicker(min(max(period/10, 10*time.Millisecond), time.Second))
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			c.divideAgain(time.Now())
		case <-c.ctx.Done():
			return
		}
	}
}

// divideAgain renews outdated divisions. It waits until the members have been
// stable for a while, so that a restart of one node does not make others load.
func (c *Cluster) divideAgain(now time.Time) {
	ms := c.members.Load()
	if now.Sub(ms.since) < c.o.Converge {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, revisions := range c.revisions {
		for _, f := range revisions {
			f.divideAgain(ms, now)
		}
	}
}

// divideAgain renews the division if it is outdated. c.mu is held.
func (f *following) divideAgain(ms *membership, now time.Time) {
	if f.division == nil {
		return
	}
	f.assess(f.view.Load()) // includes what this node has advertised
	if !f.stable && now.Sub(f.division.made) >= f.c.o.Converge {
		f.stable = true
		f.c.changed() // Surplus may have changed
	}
	if !f.outdated(ms, now) {
		return
	}
	old := f.division
	f.division = f.divide(ms, f.heldHere())
	if f.division.members == old.members && slices.EqualFunc(f.division.owners, old.owners, slices.Equal) {
		f.division.made = old.made // Surplus need not wait again
	} else {
		f.lackingSince, f.stable = time.Time{}, false
	}
	if !slices.Equal(old.owned, f.division.owned) {
		f.c.log.Info("version divided again", "db", f.db, "version", f.version, "nodes", len(ms.all),
			"partitions", len(f.division.owned), "before", len(old.owned))
		f.c.changed()
	}
}

// heldHere reports for each partition of a divided version whether this node holds it. c.mu is held.
func (f *following) heldHere() []bool {
	held := make([]bool, len(f.division.owners))
	for p := range held {
		held[p] = f.held[p]
	}
	return held
}

// outdated reports whether a version should be divided again: because it has too few reachable
// replicas for a switch, or because members have differed or replicas have been missing for
// HealAfter.
//
// Without enough replicas, who holds them matters, too: nodes that start together
// with blocks of a division among other members learn only later what the others
// hold. When all know the same, they divide the version alike, and each partition
// has an owner.
func (f *following) outdated(ms *membership, now time.Time) bool {
	others, healAfter := f.division.members != ms.signature, f.c.o.HealAfter
	if !f.sufficed && f.short(f.view.Load()) {
		return others || !slices.EqualFunc(f.division.holders, f.holders(f.heldHere()), slices.Equal)
	}
	if healAfter <= 0 {
		return false
	}
	if !f.lacking() {
		f.lackingSince = time.Time{}
	} else if f.lackingSince.IsZero() {
		f.lackingSince = now
	}
	if others {
		return now.Sub(ms.since) >= healAfter
	}
	return !f.lackingSince.IsZero() && now.Sub(f.lackingSince) >= healAfter
}

// lacking reports whether a partition has fewer replicas than configured.
func (f *following) lacking() bool {
	for p, owners := range f.division.owners {
		n := f.Replicas(p)
		if f.advertised[p] {
			n++
		}
		if n < len(owners) {
			return true
		}
	}
	return false
}

// Surplus implements version.Following. It counts only replicas that the division
// asks for, and only once the division has been stable for Converge, so that two
// nodes do not each rely on the other to keep a partition.
func (f *following) Surplus(held []bool) []int {
	c := f.c
	if c.o.HealAfter <= 0 {
		return nil
	}
	c.mu.Lock()
	d, stable := f.division, f.stable
	c.mu.Unlock()
	ms := c.members.Load()
	if !stable || len(d.owners) != len(held) || d.members != ms.signature {
		return nil
	}
	var surplus []int
	for p, here := range held {
		if here && !slices.Contains(d.owners[p], c.ShardID()) && ms.holdAll(d.owners[p], f.replicas(p)) {
			surplus = append(surplus, p)
		}
	}
	return surplus
}

// holdAll reports whether each of the shards has a node among the addresses.
func (ms *membership) holdAll(shards, addresses []string) bool {
	return len(shards) > 0 && !slices.ContainsFunc(shards, func(shard string) bool {
		return !slices.ContainsFunc(addresses, func(addr string) bool { return ms.shardOf[addr] == shard })
	})
}
