package transfer

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// Every node computes the same order, in which each owner occurs once, and reads as much as the others.
func TestReaders(t *testing.T) {
	for seed := range uint64(50) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		nodes, replication, partitions := 1+rnd.IntN(10), 1+rnd.IntN(4), rnd.IntN(200)
		owners, shuffled := make([][]string, partitions), make([][]string, partitions)
		for p := range owners {
			for i := range min(replication, nodes) {
				owners[p] = append(owners[p], fmt.Sprintf("node%d:9599", (p*replication+i)%nodes))
			}
			shuffled[p] = slices.Clone(owners[p])
			rnd.Shuffle(len(shuffled[p]), func(i, j int) { shuffled[p][i], shuffled[p][j] = shuffled[p][j], shuffled[p][i] })
		}
		got, same := readers("db", "1", owners), readers("db", "1", shuffled)
		first := map[string]int{}
		for p, order := range got {
			if !slices.Equal(order, same[p]) || !slices.Equal(slices.Sorted(slices.Values(order)), slices.Sorted(slices.Values(owners[p]))) {
				t.Fatalf("seed %d, partition %d: %q and %q of %q", seed, p, order, same[p], owners[p])
			}
			first[order[0]]++
		}
		for addr, n := range first {
			if most := partitions/nodes + 2; n > most {
				t.Errorf("seed %d: %s reads %d of %d partitions on %d nodes", seed, addr, n, partitions, nodes)
			}
		}
	}
}
