package fill

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
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
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%d\x00%s", db, version, partition, addr))
	return binary.BigEndian.Uint64(sum[:])
}
