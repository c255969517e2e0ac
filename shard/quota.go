package shard

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
)

// Shares are reckoned in whole numbers, with products of 128 bits: floating
// point may round differently on nodes of different architectures.

// quotas says how many replicas each shard gets, of partitions·replicas in
// all. Its share is proportional to its weight, but no more than one replica
// of each partition; what one cannot take goes to the others. A quota is its
// share rounded up or down.
//
// Who is rounded up is decided by a divisor method: each shard has a fixed
// threshold between 0 and 1, drawn from its key, and those go first whose
// share is the greatest multiple of their lower quota plus threshold. So one
// shard more takes replicas from others and none of the others gains any,
// except where a divisor method alone would leave the nearest two whole
// numbers. Thresholds rather than ½ make the average over many databases the
// exact share, where otherwise the heavier shards would win every time.
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

// threshold is where a shard's share is rounded up from quota to one more, in
// units of 2⁻¹⁶.
func threshold(quota int, key uint64) uint64 { return uint64(quota)<<16 + key>>48 | 1 }

// lightEnough gives the heaviest shards a replica of every partition, as long
// as their share is that or more, and returns the others with the number of
// replicas that remain for them and the sum of their weights.
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
