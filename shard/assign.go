package shard

import (
	"cmp"
	"math"
	"slices"
)

// An Assignment is a rule that divides the partitions of a version among the
// nodes of a cluster. Its value is the name it has in configuration.
type Assignment string

const (
	// RoundRobin deals the partitions out like cards: the list of partitions
	// in order, each as often as it is to be replicated; the shard ids in
	// order; position i goes to shard i mod n. It is the rule of Stripe's
	// sequins, and has to stay as it is for nodes of both to form one cluster.
	// One node more or less gives nearly every partition to another
	// node, and weights, zones and what is held already do not matter.
	RoundRobin Assignment = "round_robin"
	// Balanced gives each shard its share by weight, spreads the replicas of
	// a partition over zones, and leaves what is held already where it is, as
	// far as both allow. See docs/design/ASSIGNMENT.md for what exactly it guarantees.
	Balanced Assignment = "balanced"
)

// A Member is a node that partitions can be given to.
type Member struct {
	// ShardID names what the node holds: nodes of the same shard id hold the
	// same partitions. Shard ids are ordered byte by byte.
	ShardID string
	// Weight is the node's share relative to the weights of the others, in
	// thousandths from 0.001 to 1,000,000; what lies outside is moved to the
	// nearer end, and 0, less, or no number at all counts as 1. Among the
	// nodes of one shard the smallest weight counts: each of them has to
	// hold all of it.
	Weight float64
	// Zone is what fails at once: a rack, or an availability zone. Nodes that
	// name none are all in one zone. Among the nodes of one shard the zone
	// that sorts first counts.
	Zone string
}

// Assign divides partitions 0 to partitions-1 among the members: for each
// partition it returns the distinct shard ids, in ascending order, that are to
// hold it. These are replication many, or all where there are fewer, and none
// without members. The order of the members makes no difference, and nodes of
// different architectures come to the same result. An unknown Assignment is
// taken for RoundRobin; configuration does not let one through.
//
// RoundRobin heeds nothing else. Balanced does: db, the name of the database,
// makes the nodes that get one partition more than others different ones for
// each database; and held, for each partition the shard ids that hold it now,
// says what need not be moved. In held, too, order makes no difference, shard
// ids that are no members are passed over, and partitions may be missing from
// its end; nil if nobody holds anything.
func Assign(a Assignment, members []Member, partitions, replication int, db string, held [][]string) [][]string {
	if partitions <= 0 {
		return nil
	}
	shards := distinctShards(members)
	if len(shards) == 0 || replication <= 0 {
		return make([][]string, partitions)
	}
	replication = min(replication, len(shards))
	if a == Balanced {
		return balanced(shards, partitions, replication, db, held)
	}
	return roundRobin(shards, partitions, replication)
}

// roundRobin is the rule of that name. It expects 1 ≤ replication ≤
// len(shards): more would come to every shard all the same.
func roundRobin(shards []Member, partitions, replication int) [][]string {
	assigned := make([][]string, partitions)
	ids := make([]string, 0, partitions*replication)
	next := 0
	for p := range assigned {
		first := len(ids)
		for range replication {
			ids = append(ids, shards[next].ShardID)
			next = (next + 1) % len(shards)
		}
		assigned[p] = ids[first:len(ids):len(ids)]
		slices.Sort(assigned[p])
	}
	return assigned
}

// distinctShards returns one member for each shard id, in ascending order of
// them.
func distinctShards(members []Member) []Member {
	byID := make(map[string]Member, len(members))
	for _, m := range members {
		m.Weight = clampWeight(m.Weight)
		if other, ok := byID[m.ShardID]; ok {
			m.Weight = min(m.Weight, other.Weight)
			m.Zone = min(m.Zone, other.Zone)
		}
		byID[m.ShardID] = m
	}
	shards := make([]Member, 0, len(byID))
	for _, m := range byID {
		shards = append(shards, m)
	}
	slices.SortFunc(shards, func(a, b Member) int { return cmp.Compare(a.ShardID, b.ShardID) })
	return shards
}

const minWeight, maxWeight = 0.001, 1e6

func clampWeight(w float64) float64 {
	if math.IsNaN(w) || w <= 0 {
		return 1
	}
	return min(max(w, minWeight), maxWeight)
}
