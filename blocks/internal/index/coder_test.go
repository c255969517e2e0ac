package index

import (
	"math/rand/v2"
	"slices"
	"testing"

	"sequins/test/blocktest"
)

// TestCoderKeepsOrder holds the codes of fences and of what lies between them to their order.
func TestCoderKeepsOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(14, 14))
	for name, shape := range blocktest.KeyShapes {
		for _, n := range []int{1, 2, 50, 3000} {
			fences := make([]uint64, n)
			for i := range fences {
				fences[i] = Fence(shape(rng, i))
			}
			slices.Sort(fences)
			c := newCoder(fences)
			for range 3000 {
				i := rng.IntN(n)
				f := fences[i]
				switch rng.IntN(3) {
				case 0:
					f += rng.Uint64N(5) - 2
				case 1:
					f ^= 1 << rng.IntN(64)
				}
				code, at := c.code(f), fences[rng.IntN(n)]
				if g := c.code(at); at <= f && g > code || at >= f && g < code || code > c.max {
					t.Fatalf("%s: fence %#x has code %d, %#x has %d, of %d", name, at, g, f, code, c.max)
				}
			}
		}
	}
}
