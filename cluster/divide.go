package cluster

import (
	"slices"
	"time"

	"sequins/shard"
)

// A division says who has to hold what of a version. It is never changed.
type division struct {
	owners  [][]string // shard ids, by partition
	owned   []int      // by this node, ascending
	members uint64     // the signature of those that it was made among
	made    time.Time
}

// Owned implements version.Cluster. What others held when the version was
// divided makes no difference between nodes that divide it among the same
// members: see shard.Balanced.
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
// it, and this node where held says so.
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

// divide works out who has to hold what, among members.
func (c *Cluster) divide(f *following, ms *membership, partitions int, holders [][]string) *division {
	s := c.o.Settings
	d := &division{members: ms.signature, made: time.Now(),
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

// overreplicated says whether a partition has as many replicas as it may have,
// and this node is none of them.
func (c *Cluster) overreplicated(f *following, partition int) bool {
	limit := c.o.MaxReplication
	return limit >= c.o.Settings.Replication && !f.advertised[partition] && len(f.replicas(partition)) >= limit
}

// keepDivided looks from time to time whether versions have to be divided
// again, until Leave.
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

// divideAgain makes those divisions anew that the members have outgrown. Until
// the members have been the same for a while none of them is: a node that
// restarts does not make others load.
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
		c.assess(f, f.view.Load()) // for what this node has advertised itself
		if !f.ripe && now.Sub(f.division.made) >= c.o.Converge {
			f.ripe = true
			c.changed() // there may be a Surplus
		}
		if !c.outgrown(f, ms, now) {
			continue
		}
		old := f.division
		held := make([]bool, len(old.owners))
		for p := range f.advertised {
			if p < len(held) {
				held[p] = true
			}
		}
		f.division = c.divide(f, ms, len(held), c.holders(f, held))
		f.lackSince, f.ripe = time.Time{}, false
		if !slices.Equal(old.owned, f.division.owned) {
			c.log.Info("version divided again", "db", f.db, "version", f.version, "nodes", len(ms.all),
				"partitions", len(f.division.owned), "before", len(old.owned))
			c.changed()
		}
	}
}

// outgrown says whether a version should be divided again: because nobody could
// switch to it otherwise, or because the members have been others for long
// enough, or replicas been missing.
func (c *Cluster) outgrown(f *following, ms *membership, now time.Time) bool {
	others := f.division.members != ms.signature
	if c.o.HealAfter <= 0 {
		return others && !f.sufficed
	}
	if lacking := c.lacking(f); !lacking {
		f.lackSince = time.Time{}
	} else if f.lackSince.IsZero() {
		f.lackSince = now
	}
	switch {
	case !f.sufficed:
		return others
	case others:
		return now.Sub(ms.since) >= c.o.HealAfter
	}
	return !f.lackSince.IsZero() && now.Sub(f.lackSince) >= c.o.HealAfter
}

// lacking says whether a partition has fewer replicas than it should have.
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

// Surplus implements version.Cluster. It counts only those replicas that the
// division asks for, and only when that has stood for a while, so that two
// nodes do not both rely on the other to keep what neither has to.
func (c *Cluster) Surplus(db, version string, held []bool) []int {
	f := c.find(db, version)
	if f == nil || c.o.HealAfter <= 0 {
		return nil
	}
	c.mu.Lock()
	d, ripe := f.division, f.ripe
	c.mu.Unlock()
	ms := c.members.Load()
	if !ripe || len(d.owners) != len(held) || d.members != ms.signature {
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

// holdAll says whether each of the shards has a node among those of the
// addresses.
func (ms *membership) holdAll(shards, addresses []string) bool {
	return len(shards) > 0 && !slices.ContainsFunc(shards, func(shard string) bool {
		return !slices.ContainsFunc(addresses, func(addr string) bool { return ms.shardOf[addr] == shard })
	})
}
