package shard

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
)

// Shares are computed in integers, with 128-bit products: floating-point results
// may differ between architectures.

// quotas returns how many of the partitions·replicas replicas each shard gets. A
// share is proportional to the shard's weight, but at most one replica of each
// partition; the excess goes to the others. A quota is the share rounded up or
// down.
//
// Which shares are rounded up is decided by a divisor method: each shard has a
// fixed threshold between 0 and 1, derived from its key, and shards are served in
// order of the ratio of their share to their lower quota plus threshold. So when
// a shard is added, no other shard gains replicas, except where the divisor
// method alone would leave the nearest two integers. Thresholds rather than ½
// make the average over many databases the exact share; with ½ the heavier shards
// would always be rounded up.
func quotas(shards []Member, keys []uint64, partitions, replicas int) []int {
	weights := make([]uint64, len(shards))
	for i, s := range shards {
		weights[i] = thousandths(s.Weight)
	}
	quota := make([]int, len(shards))
	rest, total, weight := lightEnough(weights, quota, partitions, replicas)

	left := int(total)
	var inexact []int
	for _, i := range rest {
		hi, lo := bits.Mul64(total, weights[i])
		whole, fraction := bits.Div64(hi, lo, weight)
		quota[i] = int(whole)
		left -= int(whole)
		if fraction > 0 {
			inexact = append(inexact, i)
		}
	}
	slices.SortFunc(inexact, func(i, j int) int {
		return cmp.Or(
			compareProducts(weights[j], threshold(quota[i], keys[i]), weights[i], threshold(quota[j], keys[j])),
			cmp.Compare(keys[i], keys[j]), cmp.Compare(i, j))
	})
	for _, i := range inexact[:left] {
		quota[i]++
	}
	return quota
}

func thousandths(weight float64) uint64 { return uint64(math.Round(weight * 1000)) }

// threshold is the share at which a quota is rounded up by one, in units of 2⁻¹⁶.
func threshold(quota int, key uint64) uint64 { return uint64(quota)<<16 + key>>48 | 1 }

// lightEnough gives each shard whose share is at least one replica of every
// partition that quota, heaviest first, and returns the other shards with the
// number of replicas that remain for them and the sum of their weights.
func lightEnough(weights []uint64, quota []int, partitions, replicas int) (rest []int, total, weight uint64) {
	for i, w := range weights {
		rest = append(rest, i)
		weight += w
	}
	slices.SortFunc(rest, func(i, j int) int {
		return cmp.Or(cmp.Compare(weights[j], weights[i]), cmp.Compare(i, j))
	})
	total = uint64(partitions) * uint64(replicas)
	for len(rest) > 0 && compareProducts(total, weights[rest[0]], uint64(partitions), weight) >= 0 {
		quota[rest[0]] = partitions
		total -= uint64(partitions)
		weight -= weights[rest[0]]
		rest = rest[1:]
	}
	return rest, total, weight
}

// compareProducts compares a·b with c·d.
func compareProducts(a, b, c, d uint64) int {
	abHi, abLo := bits.Mul64(a, b)
	cdHi, cdLo := bits.Mul64(c, d)
	return cmp.Or(cmp.Compare(abHi, cdHi), cmp.Compare(abLo, cdLo))
}
