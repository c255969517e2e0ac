package shard

import (
	"cmp"
	"math"
	"slices"
)

// Assignment is an algorithm that assigns the partitions of a version to the
// nodes of a cluster. Its value is its name in the configuration.
type Assignment string

const (
	// RoundRobin assigns partitions in turn: the list of partitions in order,
	// each repeated replication times; the shard ids in order; position i goes to
	// shard i mod n. It is the algorithm of Stripe's sequins and is frozen, so
	// that nodes of both can form one cluster. Adding or removing a node moves
	// nearly every partition; weights and zones are ignored.
	RoundRobin Assignment = "round_robin"
	// Balanced gives each shard about its share by weight, spreads the replicas of
	// a partition over zones, and moves few partitions when a node joins or leaves.
	// See docs/design/ASSIGNMENT.md for what exactly it guarantees.
	Balanced Assignment = "balanced"
)

// Member is a node that partitions can be assigned to.
type Member struct {
	// ShardID determines what the node holds: nodes with the same shard id hold
	// the same partitions. Shard ids are ordered bytewise.
	ShardID string
	// Weight is the node's share relative to the weights of the others, from
	// 0.001 to 1,000,000 in steps of 0.001; values outside are clamped, and 0,
	// negative values and NaN count as 1. Among the nodes of one shard the
	// smallest weight counts, since each of them holds all of it.
	Weight float64
	// Zone is a failure domain: a rack or an availability zone. Nodes with an
	// empty Zone share one. Among the nodes of one shard the first zone in sort
	// order counts.
	Zone string
}

// Assign assigns partitions 0 to partitions-1 to the members. For each partition
// it returns the shard ids that hold it, distinct and ascending: replication of
// them, or all if there are fewer. The result does not depend on the order of the
// members, nor on the architecture. An unknown Assignment means RoundRobin.
//
// RoundRobin ignores db. Balanced uses it, the name of the database, so that
// different nodes get the extra partitions of different databases.
func Assign(a Assignment, members []Member, partitions, replication int, db string) [][]string {
	if partitions <= 0 {
		return nil
	}
	shards := distinctShards(members)
	if len(shards) == 0 || replication <= 0 {
		return make([][]string, partitions)
	}
	replication = min(replication, len(shards))
	if a == Balanced {
		return balanced(shards, partitions, replication, db)
	}
	return roundRobin(shards, partitions, replication)
}

// roundRobin implements RoundRobin. It requires 1 ≤ replication ≤ len(shards).
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

// distinctShards returns one member per shard id, in ascending order.
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
