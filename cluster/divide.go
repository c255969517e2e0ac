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

// Owned implements version.Cluster. Nodes that divide a version among the same
// members get the same result, whatever other nodes held at the time: see
// shard.Balanced.
func (c *Cluster) Owned(db, version string, held []bool) []int {
	f := c.find(db, version)
	if f == nil {
		f = newFollowing(key{db, version})
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.division != nil && len(f.division.owners) == len(held) {
		return f.division.owned
	}
	return c.divide(f, c.members.Load(), len(held), c.holders(f, held)).owned
}

// holders returns the shard ids that hold each partition: those that advertise
// it, and this node's where held is true.
func (c *Cluster) holders(f *following, held []bool) [][]string {
	ms := c.members.Load()
	all := make([][]string, len(held))
	for p := range all {
		for _, addr := range f.replicas(p) {
			if id, known := ms.shardOf[addr]; known {
				all[p] = append(all[p], id)
			}
		}
		if held[p] {
			all[p] = append(all[p], c.ShardID())
		}
	}
	return all
}

// divide assigns the partitions to members.
func (c *Cluster) divide(f *following, ms *membership, partitions int, holders [][]string) *division {
	s := c.o.Settings
	d := &division{members: ms.signature, made: time.Now(), holders: holders,
		owners: shard.Assign(s.Assignment, ms.shards(), partitions, s.Replication, f.db, holders)}
	if c.o.Router {
		return d
	}
	for p, shards := range d.owners {
		if slices.Contains(shards, c.ShardID()) && !c.overreplicated(f, p) {
			d.owned = append(d.owned, p)
		}
	}
	return d
}

// overreplicated reports whether other nodes hold MaxReplication replicas of a
// partition.
func (c *Cluster) overreplicated(f *following, partition int) bool {
	limit := c.o.MaxReplication
	return limit >= c.o.Settings.Replication && !f.advertised[partition] && len(f.replicas(partition)) >= limit
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
	for _, f := range *c.versions.Load() {
		if f.division == nil {
			continue
		}
		c.assess(f, f.view.Load()) // includes what this node has advertised
		if !f.stable && now.Sub(f.division.made) >= c.o.Converge {
			f.stable = true
			c.changed() // Surplus may have changed
		}
		if !c.outdated(f, ms, now) {
			continue
		}
		old := f.division
		f.division = c.divide(f, ms, len(old.owners), c.holders(f, f.heldHere()))
		if f.division.members == old.members && slices.EqualFunc(f.division.owners, old.owners, slices.Equal) {
			f.division.made = old.made // Surplus need not wait again
		} else {
			f.lackingSince, f.stable = time.Time{}, false
		}
		if !slices.Equal(old.owned, f.division.owned) {
			c.log.Info("version divided again", "db", f.db, "version", f.version, "nodes", len(ms.all),
				"partitions", len(f.division.owned), "before", len(old.owned))
			c.changed()
		}
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

// outdated reports whether a version should be divided again: because too few
// replicas can be reached to switch to it, or because members have differed, or
// replicas been missing, for HealAfter.
//
// Without enough replicas, who holds them matters, too: nodes that start together
// with blocks of a division among other members learn only later what the others
// hold. When all know the same, they divide the version alike, and each partition
// has an owner.
func (c *Cluster) outdated(f *following, ms *membership, now time.Time) bool {
	others := f.division.members != ms.signature
	if !f.sufficed && c.short(f, f.view.Load()) {
		return others || !slices.EqualFunc(f.division.holders, c.holders(f, f.heldHere()), slices.Equal)
	}
	if c.o.HealAfter <= 0 {
		return false
	}
	if lacking := c.lacking(f); !lacking {
		f.lackingSince = time.Time{}
	} else if f.lackingSince.IsZero() {
		f.lackingSince = now
	}
	if others {
		return now.Sub(ms.since) >= c.o.HealAfter
	}
	return !f.lackingSince.IsZero() && now.Sub(f.lackingSince) >= c.o.HealAfter
}

// lacking reports whether a partition has fewer replicas than configured.
func (c *Cluster) lacking(f *following) bool {
	for p, owners := range f.division.owners {
		n := len(f.replicas(p))
		if f.advertised[p] {
			n++
		}
		if n < len(owners) {
			return true
		}
	}
	return false
}

// Surplus implements version.Cluster. It counts only replicas that the division
// asks for, and only once the division has been stable for Converge, so that two
// nodes do not each rely on the other to keep a partition.
func (c *Cluster) Surplus(db, version string, held []bool) []int {
	f := c.find(db, version)
	if f == nil || c.o.HealAfter <= 0 {
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
