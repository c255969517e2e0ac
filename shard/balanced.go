package shard

import (
	"hash/fnv"
	"math/bits"
	"slices"
)

// division is an assignment under construction. The partitions choose one after another, by score, among the shards and
// zones with free quota. Two rules guarantee that it ends with a complete assignment: a shard whose free quota equals the
// number of partitions left is chosen by each of them, and each partition gets at least least and at most most replicas in
// a zone.
type division struct {
	shards     []Member
	seed       uint64 // hash of the database
	partitions int

	// least and most bound the replicas of one partition in a zone: the zone's quota divided by the number of partitions,
	// rounded down and up. So replicas are in distinct zones unless a zone's quota is more than one of each partition.
	least, most []int
	extra       int // replicas of a partition above the sum of least

	open  []spot
	room  []int    // by zone: free quota
	best  [][]pick // by zone: candidates for the current partition
	picks []pick
	ids   []string // shard ids chosen so far; their array is that of the result
}

// spot is a shard with free quota, and the inputs of its score, stored together because all spots are visited for each
// partition.
type spot struct {
	key, inverse uint64 // hash of the shard's id and the database, inverse of its weight
	room         int
	shard, zone  int32
}

// pick is a candidate for a partition; lower scores are better.
type pick struct {
	score uint64
	spot  int
}

// balanced implements Balanced. It requires 1 ≤ replicas ≤ len(shards).
func balanced(shards []Member, partitions, replicas int, db string) [][]string {
	d := newDivision(shards, partitions, replicas, db)
	assigned := make([][]string, partitions)
	for p := range assigned {
		first := len(d.ids)
		d.rank(p)
		d.choose(p)
		assigned[p] = d.ids[first:len(d.ids):len(d.ids)]
		slices.Sort(assigned[p])
	}
	return assigned
}

func newDivision(shards []Member, partitions, replicas int, db string) *division {
	d := &division{
		shards: shards, seed: hashString(0, db), partitions: partitions, extra: replicas, ids: make([]string, 0, partitions*replicas),
	}
	keys := make([]uint64, len(shards))
	for i, s := range shards {
		keys[i] = hashString(d.seed, s.ShardID)
	}
	zones := make(map[string]int)
	for i, quota := range quotas(shards, keys, partitions, replicas) {
		z, known := zones[shards[i].Zone]
		if !known {
			z = len(zones)
			zones[shards[i].Zone] = z
			d.room = append(d.room, 0)
		}
		d.room[z] += quota
		d.open = append(d.open, spot{keys[i], 1 << 63 / thousandths(shards[i].Weight), quota, int32(i), int32(z)})
	}
	for _, quota := range d.room {
		d.least = append(d.least, quota/partitions)
		d.most = append(d.most, (quota+partitions-1)/partitions)
		d.extra -= quota / partitions
	}
	d.best = make([][]pick, len(zones))
	return d
}

// rank finds the best spots of each zone for partition p, and removes those without free quota.
func (d *division) rank(p int) {
	for z := range d.best {
		d.best[z] = d.best[z][:0]
	}
	left, key, kept := d.partitions-p, mix(d.seed+uint64(p)*0x9e3779b97f4a7c15), 0
	for at := range d.open {
		if d.open[at].room == 0 {
			continue
		}
		if at != kept {
			d.open[kept] = d.open[at]
		}
		s := &d.open[kept]
		score := score(key, s.key, s.inverse) + 1
		if s.room == left {
			score = 0
		}
		best, most := d.best[s.zone], d.most[s.zone]
		if len(best) < most || score < best[most-1].score {
			d.best[s.zone] = insert(best, pick{score, kept}, most)
		}
		kept++
	}
	d.open = d.open[:kept]
}

// choose gives partition p the least number of replicas in each zone, and the remaining ones to zones below most.
func (d *division) choose(p int) {
	left := d.partitions - p
	d.picks = d.picks[:0]
	for z, best := range d.best {
		over := d.room[z] - d.least[z]*left
		for _, b := range best[:d.least[z]] {
			d.take(b)
		}
		if over == 0 {
			continue
		}
		b := best[d.least[z]]
		if over == left {
			b.score = 0
		}
		d.picks = insert(d.picks, b, d.extra)
	}
	for _, b := range d.picks {
		d.take(b)
	}
}

// take gives the current partition a replica.
func (d *division) take(b pick) {
	s := &d.open[b.spot]
	s.room--
	d.room[s.zone]--
	d.ids = append(d.ids, d.shards[s.shard].ShardID)
}

// insert inserts b and keeps the best n in ascending order.
func insert(best []pick, b pick, n int) []pick {
	if len(best) == n {
		if n == 0 || best[n-1].score <= b.score {
			return best
		}
		best = best[:n-1]
	}
	best = append(best, b)
	for at := len(best) - 1; at > 0 && best[at-1].score > b.score; at-- {
		best[at], best[at-1] = best[at-1], b
	}
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
