package transfer

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
)

// readers returns for each partition its owners in the order in which they read it from the source: first those that are the
// first reader of the fewest partitions before it. All nodes with the same division get the same result.
func readers(db, version string, owners [][]string) [][]string {
	first := make(map[string]int) // how many partitions a node is the first reader of
	all := make([][]string, len(owners))
	for p, of := range owners {
		rank := func(addr string) uint64 {
			sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%d\x00%s", db, version, p, addr))
			return binary.BigEndian.Uint64(sum[:])
		}
		all[p] = slices.SortedFunc(slices.Values(of), func(a, b string) int {
			return cmp.Or(cmp.Compare(first[a], first[b]), cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
		})
		if len(of) > 0 {
			first[all[p][0]]++
		}
	}
	return all
}
