package fill

import (
	"cmp"
	"hash/fnv"
	"slices"
	"strconv"
)

// readers returns for each partition its owners in the order in which they read it from the source. Each node is
// the first of about as many partitions as any other. All nodes with the same division get the same result.
func readers(db, version string, owners [][]string) [][]string {
	first := make(map[string]int) // how many partitions a node is the first reader of
	all := make([][]string, len(owners))
	for p, of := range owners {
		order := slices.Clone(of)
		slices.SortFunc(order, func(a, b string) int {
			return cmp.Or(cmp.Compare(rank(db, version, p, a), rank(db, version, p, b)), cmp.Compare(a, b))
		})
		order = slices.Compact(order)
		least := 0
		for i, addr := range order {
			if first[addr] < first[order[least]] {
				least = i
			}
		}
		if len(order) > 0 {
			chosen := order[least]
			first[chosen]++
			order = slices.Insert(slices.Delete(order, least, least+1), 0, chosen)
		}
		all[p] = order
	}
	return all
}

// rank orders the owners of a partition.
func rank(db, version string, partition int, addr string) uint64 {
	h := fnv.New64a()
	for _, s := range []string{db, version, strconv.Itoa(partition), addr} {
		h.Write([]byte(s)) // never fails
		h.Write([]byte{0})
	}
	x := h.Sum64() // whose high bits depend little on the last bytes
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	return x ^ x>>33
}
