package status

import (
	"fmt"

	"sequins/internal/human"
	"sequins/shard"
)

const (
	// smallest is the size of a database, and of a partition, below which it does not matter how it is divided, in bytes.
	smallest = 64 << 20
	// skewed is how many times the mean size a partition may have.
	skewed = 4
	// maxBlock limits the size of a block that a node reports, in bytes, so that sums cannot overflow.
	maxBlock = 1 << 40
)

// Shards returns the members that the partitions of the cluster are assigned to, by shard id: of nodes with the same one, the least weight and the
// first zone count, as for shard.Assign. A single node has none.
func (st *Status) Shards() map[string]shard.Member {
	all := make(map[string]shard.Member)
	for _, p := range st.Members() {
		if p.Weight <= 0 || p.ShardID == "" { // a router, or a node that has not chosen its shard id yet
			continue
		}
		m := shard.Member{ShardID: p.ShardID, Weight: p.Weight, Zone: p.Zone}
		if other, found := all[p.ShardID]; found {
			m.Weight, m.Zone = min(m.Weight, other.Weight), min(m.Zone, other.Zone)
		}
		all[p.ShardID] = m
	}
	return all
}

// Sizes returns the size of the block of each partition in bytes, and 0 where no node that has answered holds it.
func (v *Version) Sizes() []int64 {
	sizes := make([]int64, max(0, min(v.NumPartitions, shard.MaxPartitions)))
	for _, n := range v.Nodes {
		for i, p := range n.Partitions[:min(len(n.Partitions), len(n.PartitionBytes))] {
			if p >= 0 && p < len(sizes) {
				sizes[p] = max(sizes[p], min(n.PartitionBytes[i], maxBlock))
			}
		}
	}
	return sizes
}

// Hints returns how a version of a db is divided badly among shards, one sentence each. A db of less than 64 MiB, and a partition of less, is
// never divided badly; the mean is of all partitions, and unknown while the size of one is.
func (v *Version) Hints(db string, shards int) (hints []string) {
	var total int64
	largest, known := 0, true
	sizes := v.Sizes()
	for p, size := range sizes {
		total += size
		known = known && size > 0
		if size > sizes[largest] {
			largest = p
		}
	}
	if idle := shards - len(sizes)*max(1, v.TargetReplication); idle > 0 && total >= smallest {
		hints = append(hints, fmt.Sprintf("%s has %s with replication %d, so %d of %d nodes hold nothing of it: let the job write more partitions, or use fewer nodes.",
			db, human.Plural(v.NumPartitions, "partition"), max(1, v.TargetReplication), idle, shards))
	}
	if known && total > 0 && sizes[largest] >= smallest && sizes[largest] > skewed*(total/int64(len(sizes))) {
		hints = append(hints, fmt.Sprintf("Partition %d of %s has %s, more than %d times the mean of %s: the keys are skewed, and its nodes have more to store and to answer than others.",
			largest, db, human.Size(sizes[largest]), skewed, human.Size(total/int64(len(sizes)))))
	}
	return hints
}
