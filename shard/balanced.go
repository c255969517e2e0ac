package shard

import (
	"hash/fnv"
	"math"
	"math/bits"
	"slices"
)

// division is an assignment under construction. The partitions choose their shards one after another: each takes those with
// the lowest scores among the ones that have room.
//
// A shard with room for all partitions left is due: room that it does not use now is lost. A zone is due as often as the
// partitions left fit into its room. Because zones that are due come first, and in them shards that are due, every partition
// finds its replicas, with at most zone.most of them in a zone.
type division struct {
	spots []spot
	zones []zone
}

// spot is a shard, and its score for the current partition; lower ones are better.
type spot struct {
	key             uint64 // hash of the shard's id and the database
	weight, inverse uint64
	room            int // partitions that it may still get
	zone            int
	score           uint64
	chosen          bool // by the current partition
}

// zone is a failure domain.
type zone struct {
	weight uint64 // of the shards without room
	most   int    // replicas of one partition: the zone's share of them, rounded up
	room   int    // of its shards, each at most the partitions left
	used   int    // replicas of the current partition
}

// balanced implements Balanced. It requires 1 ≤ replicas ≤ len(shards).
func balanced(shards []Member, partitions, replicas int, db string) [][]string {
	seed := hashString(0, db)
	d := newDivision(shards, seed)
	d.makeRoom(partitions, replicas)
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

func newDivision(shards []Member, seed uint64) *division {
	d, zones := new(division), make(map[string]int)
	for _, s := range shards {
		z, known := zones[s.Zone]
		if !known {
			z = len(zones)
			zones[s.Zone] = z
			d.zones = append(d.zones, zone{})
		}
		weight := uint64(math.Round(s.Weight * 1000))
		d.zones[z].weight += weight
		d.spots = append(d.spots, spot{key: hashString(seed, s.ShardID), weight: weight, inverse: 1 << 63 / weight, zone: z})
	}
	return d
}

// makeRoom gives each shard room for its share, rounded up. A share is proportional to the shard's weight, but at most one
// replica of each partition; the excess goes to the others. Shares are computed in integers, as floating-point results may
// differ between architectures. No product overflows: the assignment itself has partitions·replicas entries.
func (d *division) makeRoom(partitions, replicas int) {
	left, whole := uint64(replicas), uint64(0) // replicas of a partition on the shards without room, and their weight
	for _, z := range d.zones {
		whole += z.weight
	}
	for again := true; again; {
		again = false
		for i := range d.spots {
			if s := &d.spots[i]; s.room == 0 && left*s.weight >= whole {
				z := &d.zones[s.zone]
				s.room, z.most, again = partitions, z.most+1, true
				left, whole, z.weight = left-1, whole-s.weight, z.weight-s.weight
			}
		}
	}
	for i := range d.zones {
		if z := &d.zones[i]; z.weight > 0 {
			z.most += int((left*z.weight + whole - 1) / whole)
		}
	}
	for i := range d.spots {
		if s := &d.spots[i]; s.room == 0 {
			s.room = int((left*uint64(partitions)*s.weight + whole - 1) / whole)
		}
	}
}

// begin begins a partition; left is the number of those that have no replicas yet, itself included.
func (d *division) begin(key uint64, left int) {
	for i := range d.zones {
		d.zones[i].room, d.zones[i].used = 0, 0
	}
	for i := range d.spots {
		s := &d.spots[i]
		s.score, s.chosen = score(key^s.key, s.inverse), false
		d.zones[s.zone].room += min(s.room, left)
	}
}

// choose gives the current partition a replica, and returns its shard. It leaves a zone the room for the partitions left to
// have as many replicas in it as this one has already.
func (d *division) choose(left int) int {
	best, bestRank := -1, 0
	for i := range d.spots {
		s := &d.spots[i]
		z := &d.zones[s.zone]
		if s.room == 0 || s.chosen || z.used == z.most || z.room <= z.used*left {
			continue
		}
		rank := 0
		if z.room < (z.used+1)*left {
			rank = 2
		}
		if s.room < left {
			rank++
		}
		if best < 0 || rank < bestRank || rank == bestRank && s.score < d.spots[best].score {
			best, bestRank = i, rank
		}
	}
	s := &d.spots[best]
	s.room, s.chosen = s.room-1, true
	d.zones[s.zone].used++
	return best
}

// score is weighted rendezvous hashing: the probability of the lowest score is about proportional to the weight, and the
// scores of other members do not change it. It is the negative logarithm of a random number below 1, divided by the weight.
func score(key, inverseWeight uint64) uint64 {
	random := mix(key)
	zeros := bits.LeadingZeros64(random)
	logarithm := uint64(zeros)<<57 + ^(random<<(zeros+1))>>7 // to base 2, linear between powers of two
	hi, _ := bits.Mul64(logarithm, inverseWeight)
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
