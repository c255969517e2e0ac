package shard

import (
	"hash/fnv"
	"math/bits"
	"slices"
)

// division is an assignment under construction. The partitions choose one after another, by score, among the shards with
// free quota. Two rules guarantee that it ends with a complete assignment: a shard whose free quota equals the number of
// partitions left is chosen by each of them, and each partition has as many replicas in a zone as the zone's free quota
// divided by the number of partitions left, rounded down or up. So replicas are in distinct zones unless a zone's quota is
// more than one of each partition.
type division struct {
	spots []spot
	zones []zone
}

// spot is a shard, and its score for the current partition; lower ones are better.
type spot struct {
	key, inverse uint64 // hash of the shard's id and the database, inverse of its weight
	room         int    // free quota
	zone         int
	score        uint64
	chosen       bool // by the current partition
}

// zone is a failure domain.
type zone struct {
	room        int // free quota
	least, most int // replicas that the current partition may still have in it
}

// balanced implements Balanced. It requires 1 ≤ replicas ≤ len(shards).
func balanced(shards []Member, partitions, replicas int, db string) [][]string {
	seed := hashString(0, db)
	d := newDivision(shards, partitions, replicas, seed)
	assigned := make([][]string, partitions)
	ids := make([]string, 0, partitions*replicas)
	for p := range assigned {
		first := len(ids)
		d.begin(mix(seed+uint64(p)*0x9e3779b97f4a7c15), partitions-p)
		for range replicas {
			ids = append(ids, shards[d.choose(partitions-p)].ShardID)
		}
		assigned[p] = ids[first:len(ids):len(ids)]
		slices.Sort(assigned[p])
	}
	return assigned
}

func newDivision(shards []Member, partitions, replicas int, seed uint64) *division {
	keys := make([]uint64, len(shards))
	for i, s := range shards {
		keys[i] = hashString(seed, s.ShardID)
	}
	d, zones := new(division), make(map[string]int)
	for i, quota := range quotas(shards, keys, partitions, replicas) {
		z, known := zones[shards[i].Zone]
		if !known {
			z = len(zones)
			zones[shards[i].Zone] = z
			d.zones = append(d.zones, zone{})
		}
		d.zones[z].room += quota
		d.spots = append(d.spots, spot{key: keys[i], inverse: 1 << 63 / thousandths(shards[i].Weight), room: quota, zone: z})
	}
	return d
}

// begin begins a partition; left is the number of those that have no replicas yet, itself included.
func (d *division) begin(key uint64, left int) {
	for i := range d.spots {
		s := &d.spots[i]
		s.score, s.chosen = score(key, s.key, s.inverse), false
	}
	for i := range d.zones {
		z := &d.zones[i]
		z.least, z.most = z.room/left, (z.room+left-1)/left
	}
}

// choose gives the current partition a replica, and returns its shard.
func (d *division) choose(left int) int {
	best, bestRank := -1, 0
	for i := range d.spots {
		s := &d.spots[i]
		z := d.zones[s.zone]
		if s.room == 0 || s.chosen || z.most == 0 {
			continue
		}
		rank := 2
		switch {
		case s.room == left:
			rank = 0
		case z.least > 0:
			rank = 1
		}
		if best < 0 || rank < bestRank || rank == bestRank && s.score < d.spots[best].score {
			best, bestRank = i, rank
		}
	}
	s := &d.spots[best]
	z := &d.zones[s.zone]
	s.room, s.chosen = s.room-1, true
	z.room, z.least, z.most = z.room-1, max(0, z.least-1), z.most-1
	return best
}

// score is weighted rendezvous hashing: the probability of the lowest score is about proportional to the weight, and the
// scores of other members do not change it.
func score(partKey, shardKey, inverseWeight uint64) uint64 {
	hi, lo := bits.Mul64(partKey^shardKey, partKey|1)
	hi, _ = bits.Mul64(hi^lo, inverseWeight)
	return hi
}

// mix is the finalizer of MurmurHash3: each input bit flips each output bit with probability ½.
func mix(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

func hashString(seed uint64, s string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(s)) //nolint:errcheck // never fails
	return mix(seed ^ h.Sum64())
}
