package merge_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"sequins/internal/merge"
)

// Random sorted sources, some empty and some that begin late, are merged as sorting merges them.
func TestMerge(t *testing.T) {
	for seed := range uint64(500) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var tree merge.Tree[*[]string]
		var want, got []string
		sources := make([][]string, rnd.IntN(9))
		for i := range 1 + rnd.IntN(200) {
			key := fmt.Sprintf("%0*d", 1+rnd.IntN(12), i)
			if len(sources) > 0 {
				s := &sources[rnd.IntN(len(sources))]
				*s = append(*s, key)
				want = append(want, key)
			}
		}
		slices.Sort(want)
		for i := range sources {
			slices.Sort(sources[i])
			tree.Leaves = append(tree.Leaves, merge.Leaf[*[]string]{Source: &sources[i]})
			step(&tree.Leaves[i])
		}
		tree.Build()
		for l := tree.Winner(); l != nil; l = tree.Winner() {
			got = append(got, string(l.Key))
			step(l)
			tree.Replay(tree.First())
		}
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d: %q, want %q", seed, got, want)
		}
	}
}

// Of equal keys, that of the last leaf comes first.
func TestEqualKeys(t *testing.T) {
	for n := range 10 {
		var tree merge.Tree[*[]string]
		for range n {
			tree.Leaves = append(tree.Leaves, merge.Leaf[*[]string]{Source: &[]string{"", "a", "the same first eight bytes", "z"}})
			step(&tree.Leaves[len(tree.Leaves)-1])
		}
		tree.Build()
		for round := range 4 * n {
			if got, want := tree.First(), n-1-round%n; got != want {
				t.Fatalf("%d leaves, round %d: leaf %d is first, want %d", n, round, got, want)
			}
			step(tree.Winner())
			tree.Replay(tree.First())
		}
	}
}

// step moves a leaf to the next key of its source.
func step(l *merge.Leaf[*[]string]) {
	if len(*l.Source) == 0 {
		l.Done = true
		return
	}
	l.Set([]byte((*l.Source)[0]))
	*l.Source = (*l.Source)[1:]
}
