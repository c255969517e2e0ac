package index

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"sequins/test/blocktest"
)

// indexOf is the index of pages that each begin with every thirtieth of some keys.
func indexOf(t *testing.T, keys [][]byte) *Index {
	t.Helper()
	const inPage, pageSize = 30, 8
	b := NewBuilder(t.TempDir())
	defer b.Close()
	for i := 0; i < len(keys); i += inPage {
		var s []byte
		if i > 0 {
			s = Separator(keys[i-1], keys[i])
		}
		if err := b.Add(s, int64(i)*pageSize, pageSize, false); err != nil {
			t.Fatal(err)
		}
	}
	var encoded bytes.Buffer
	if err := b.WriteTo(keys[0], keys[len(keys)-1], func(p []byte) error { _, err := encoded.Write(p); return err }); err != nil {
		t.Fatal(err)
	}
	x, err := Parse(encoded.Bytes(), pageSize, int64(len(keys))*pageSize)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func sortedKeys(rng *rand.Rand, shape func(*rand.Rand, int) []byte, n int) [][]byte {
	keys := make([][]byte, n)
	for i := range keys {
		keys[i] = shape(rng, i)
	}
	slices.SortFunc(keys, bytes.Compare)
	return slices.CompactFunc(keys, bytes.Equal)
}

// TestGuess holds the index to what makes it fast: where keys are spread evenly, a guess is almost never
// wrong. Where they are not, it must be right all the same.
func TestGuess(t *testing.T) {
	rng := rand.New(rand.NewPCG(16, 16))
	even := map[string]bool{"hex": true, "user": true}
	for name, shape := range blocktest.KeyShapes {
		keys := sortedKeys(rng, shape, 60_000)
		if name == "high" || name == "zeros" || name == "long" {
			keys = sortedKeys(rng, shape, 3000) // they are long, or there are no more
		}
		x := indexOf(t, keys)
		defer x.Free() //nolint:errcheck // the process is about to end
		right := 0
		for i, key := range keys {
			rest, _ := x.CutPrefix(key)
			page := x.Find(rest)
			if page != i/30 {
				t.Fatalf("%s: key %d, %q, is in page %d, found %d", name, i, key, i/30, page)
			}
			if near := x.Guess(Fence(rest)); page >= near && page < near+window-1 {
				right++
			}
		}
		if share := float64(right) / float64(len(keys)); even[name] && share < 0.97 {
			t.Errorf("%s: %.1f %% of the guesses are right", name, 100*share)
		}
	}
}
