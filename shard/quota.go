package shard

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
)

// quotas returns how many of the partitions·replicas replicas each shard gets. A
// share is proportional to the shard's weight, but at most one replica of each
// partition; the excess goes to the others. A quota is the share rounded up or
// down: the shards lie side by side, each as wide as its share, from a random
// start on, and each gets the whole numbers in it. So the average over many
// databases is the exact share.
//
// Shares are computed in integers, with 128-bit products: floating-point results
// may differ between architectures.
func quotas(shards []Member, keys []uint64, partitions, replicas int) []int {
	quota, order := make([]int, len(shards)), make([]int, len(shards))
	var weight uint64 // of the shards without a quota
	for i, s := range shards {
		order[i] = i
		weight += thousandths(s.Weight)
	}
	slices.SortFunc(order, func(i, j int) int {
		return cmp.Or(cmp.Compare(shards[j].Weight, shards[i].Weight), cmp.Compare(keys[i], keys[j]), cmp.Compare(i, j))
	})
	left := uint64(partitions * replicas)
	for len(order) > 0 && share(left, thousandths(shards[order[0]].Weight), weight, 0) >= uint64(partitions) {
		quota[order[0]] = partitions
		left -= uint64(partitions)
		weight -= thousandths(shards[order[0]].Weight)
		order = order[1:]
	}
	var end, before, start uint64
	for _, i := range order {
		if end == 0 {
			start = keys[i] % weight
		}
		end += thousandths(shards[i].Weight)
		upTo := share(left, end, weight, start)
		quota[i] = int(upTo - before)
		before = upTo
	}
	return quota
}

// share returns (total·part + start) / whole, rounded down. It requires part ≤ whole and start < whole.
func share(total, part, whole, start uint64) uint64 {
	hi, lo := bits.Mul64(total, part)
	lo, carry := bits.Add64(lo, start, 0)
	quotient, _ := bits.Div64(hi+carry, lo, whole)
	return quotient
}

func thousandths(weight float64) uint64 { return uint64(math.Round(weight * 1000)) }
