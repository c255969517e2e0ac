package shard

import (
	"hash/fnv"
	"math/bits"
	"slices"
)

// division is an assignment under construction.
type division struct {
	shards   []Member
	keys     []uint64 // by shard: hash of its id and the database
	inverse  []uint64 // by shard: inverse of its weight
	seed     uint64   // hash of the database
	replicas int      // per partition, at most len(shards)

	zone  []int // by shard
	zones int
	// least and most bound the replicas of one partition in a zone: the zone's
	// quota divided by the number of partitions, rounded down and up. So replicas
	// are in distinct zones unless a zone's quota is more than one of each
	// partition.
	least, most []int
	all         []int32 // all shards

	quota, load []int // by shard
	on          [][]int32
	was         [][]int32 // by partition: the shards that held it initially
}

// balanced implements Balanced. It requires 1 ≤ replicas ≤ len(shards).
func balanced(shards []Member, partitions, replicas int, db string, held [][]string) [][]string {
	d := newDivision(shards, partitions, replicas, db)
	if d.hold(held) {
		d.rebalance()
	} else {
		d.fresh()
	}
	return d.names()
}

func newDivision(shards []Member, partitions, replicas int, db string) *division {
	d := &division{shards: shards, seed: hashString(0, db), replicas: replicas}
	for i, s := range shards {
		d.all = append(d.all, int32(i))
		d.keys = append(d.keys, hashString(d.seed, s.ShardID))
		d.inverse = append(d.inverse, 1<<63/thousandths(s.Weight))
	}
	d.quota = quotas(shards, d.keys, partitions, replicas)
	d.load = make([]int, len(shards))
	d.on = make([][]int32, partitions)
	d.setZones()
	return d
}

func (d *division) setZones() {
	index := map[string]int{}
	d.zone = make([]int, len(d.shards))
	var quota []int
	for i, s := range d.shards {
		z, ok := index[s.Zone]
		if !ok {
			z = len(index)
			index[s.Zone] = z
			quota = append(quota, 0)
		}
		d.zone[i] = z
		quota[z] += d.quota[i]
	}
	d.zones = len(quota)
	for _, q := range quota {
		d.least = append(d.least, q/len(d.on))
		d.most = append(d.most, (q+len(d.on)-1)/len(d.on))
	}
}

// hold adds the replicas that are held, and reports whether there are any.
func (d *division) hold(held [][]string) bool {
	index := make(map[string]int32, len(d.shards))
	for i, s := range d.shards {
		index[s.ShardID] = int32(i)
	}
	found := false
	for p := range min(len(held), len(d.on)) {
		for _, id := range held[p] {
			if i, ok := index[id]; ok && !slices.Contains(d.on[p], i) {
				d.add(p, i)
				found = true
			}
		}
		slices.Sort(d.on[p])
	}
	return found
}

func (d *division) add(p int, i int32) {
	d.on[p] = append(d.on[p], i)
	d.load[i]++
}

func (d *division) remove(p int, i int32) {
	at := slices.Index(d.on[p], i)
	d.on[p] = slices.Delete(d.on[p], at, at+1)
	d.load[i]--
}

// names returns the division as shard ids.
func (d *division) names() [][]string {
	assigned := make([][]string, len(d.on))
	ids := make([]string, 0, len(d.on)*d.replicas)
	for p, on := range d.on {
		slices.Sort(on)
		first := len(ids)
		for _, i := range on {
			ids = append(ids, d.shards[i].ShardID)
		}
		assigned[p] = ids[first:len(ids):len(ids)]
	}
	return assigned
}

// score returns the rank of shard i for partition p; lower is better.
func (d *division) score(partKey uint64, i int32) uint64 {
	return score(partKey, d.keys[i], d.inverse[i])
}

// score is weighted rendezvous hashing: the probability of the lowest score is
// about proportional to the weight, and the scores of other members do not change
// it.
func score(partKey, shardKey, inverseWeight uint64) uint64 {
	hi, lo := bits.Mul64(partKey^shardKey, partKey|1)
	hi, _ = bits.Mul64(hi^lo, inverseWeight)
	return hi
}

func (d *division) partKey(p int) uint64 { return mix(d.seed + uint64(p)*0x9e3779b97f4a7c15) }

// mix is the finalizer of MurmurHash3: each input bit flips each output bit with
// probability ½.
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
