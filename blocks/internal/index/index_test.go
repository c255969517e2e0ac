package index

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cespare/xxhash/v2"

	"sequins/test/blocktest"
	"sequins/test/expect"
)

const pageSize = 8 // bytes of a page, of any number of records

// encode encodes the index of pages of as many of the keys as inPage says, 1 or more.
func encode(t testing.TB, keys [][]byte, inPage func() int) (encoded []byte, pageOf []int) {
	t.Helper()
	b := NewBuilder(t.TempDir())
	defer b.Close()
	pages := 0
	for i := 0; i < len(keys); pages++ {
		var s []byte
		if i > 0 {
			s = Separator(keys[i-1], keys[i])
		}
		for range min(inPage(), len(keys)-i) {
			b.AddRecord(xxhash.Sum64(keys[i]))
			pageOf = append(pageOf, pages)
			i++
		}
		expect.NoError(t, b.Add(s, int64(pages)*pageSize, pageSize, false))
	}
	expect.NoError(t, b.WriteTo(keys[0], keys[len(keys)-1], func(p []byte) error { encoded = append(encoded, p...); return nil }))
	return encoded, pageOf
}

func indexOf(t testing.TB, keys [][]byte, inPage func() int) (x *Index, pageOf []int) {
	t.Helper()
	encoded, pageOf := encode(t, keys, inPage)
	x, err := Parse(encoded, pageSize, int64(pageOf[len(pageOf)-1]+1)*pageSize)
	expect.NoError(t, err)
	t.Cleanup(func() { x.Free() }) //nolint:errcheck // the process is about to end
	return x, pageOf
}

// mixed returns how many records each page has: stretches of pages with few records, and others.
func mixed(rng *rand.Rand) func() int { return func() int { return 1 + rng.IntN(1+rng.IntN(8)) } }

func sortedKeys(rng *rand.Rand, shape func(*rand.Rand, int) []byte, n int) [][]byte {
	keys := make([][]byte, n)
	for i := range keys {
		keys[i] = shape(rng, i)
	}
	slices.SortFunc(keys, bytes.Compare)
	return slices.CompactFunc(keys, bytes.Equal)
}

// TestLookup finds keys of all shapes in pages of many records, of one, and of few and many.
func TestLookup(t *testing.T) {
	rng := rand.New(rand.NewPCG(16, 16))
	for name, shape := range blocktest.KeyShapes {
		for pages, inPage := range map[string]func() int{
			"many": func() int { return 30 }, "one": func() int { return 1 },
			"few": func() int { return 1 + rng.IntN(fewRecords) }, "mixed": mixed(rng),
		} {
			keys := sortedKeys(rng, shape, 3000)
			x, pageOf := indexOf(t, keys, inPage)
			if got, want := x.Pages(), pageOf[len(pageOf)-1]+1; got != want {
				t.Fatalf("%s, %s: %d pages, want %d", name, pages, got, want)
			}
			for i, key := range keys {
				rest, _ := x.CutPrefix(key)
				group := x.Find(rest)
				page, l := x.Page(group, xxhash.Sum64(key))
				first, end := x.Bounds(group)
				if page != pageOf[i] || l != x.Location(page) || page < first || page >= end {
					t.Fatalf("%s, %s: key %d, %q, is in page %d, found %d at %v, among %d to %d", name, pages, i, key, pageOf[i], page, l, first, end)
				}
			}
			for i := range x.Pages() {
				if l := x.Location(i); l.Offset() != int64(i)*pageSize || l.Length() != pageSize {
					t.Fatalf("%s, %s: page %d has %d bytes at %d", name, pages, i, l.Length(), l.Offset())
				}
			}
		}
	}
}

// TestEqualHashes has an index of pages that no seed separates: each is a group of its own.
func TestEqualHashes(t *testing.T) {
	b := NewBuilder(t.TempDir())
	defer b.Close()
	keys := [][]byte{[]byte("a"), []byte("b"), []byte("c")}
	for i, key := range keys {
		b.AddRecord(7)
		expect.NoError(t, b.Add(key, int64(i)*pageSize, pageSize, false))
	}
	var encoded []byte
	expect.NoError(t, b.WriteTo(keys[0], keys[2], func(p []byte) error { encoded = append(encoded, p...); return nil }))
	x, err := Parse(encoded, pageSize, 3*pageSize)
	expect.NoError(t, err)
	for i, key := range keys {
		if page, l := x.Page(x.Find(key), 7); page != i || l.Offset() != int64(i)*pageSize {
			t.Fatalf("%s: page %d at %d", key, page, l.Offset())
		}
	}
}

// TestGuess holds the index to what makes it fast: where keys are spread evenly, a guess is almost never wrong.
func TestGuess(t *testing.T) {
	rng := rand.New(rand.NewPCG(16, 16))
	for _, name := range []string{"hex", "user"} {
		for _, n := range []int{1, 30} {
			keys := sortedKeys(rng, blocktest.KeyShapes[name], 60_000)
			x, _ := indexOf(t, keys, func() int { return n })
			right := 0
			for _, key := range keys {
				rest, _ := x.CutPrefix(key)
				near := x.Guess(Fence(rest))
				if group := x.FindNear(rest, near); group >= near && group < near+window-1 {
					right++
				}
			}
			if share := float64(right) / float64(len(keys)); share < 0.97 {
				t.Errorf("%s: %.1f %% of the guesses are right", name, 100*share)
			}
		}
	}
}

// FuzzParse edits an index with runs, three bytes an edit: where, and what to xor there. What Parse accepts leads to pages that
// lie in the file in their order, whatever is asked.
func FuzzParse(f *testing.F) {
	rng := rand.New(rand.NewPCG(17, 17))
	keys := sortedKeys(rng, blocktest.KeyShapes["url"], 300)
	encoded, pageOf := encode(f, keys, mixed(rng))
	dataEnd := int64(pageOf[len(pageOf)-1]+1) * pageSize
	for i := range 1000 {
		edits := make([]byte, 3*(i%4))
		for j := range edits {
			edits[j] = byte(rng.Uint32())
		}
		f.Add(edits)
	}
	f.Fuzz(func(t *testing.T, edits []byte) {
		b := bytes.Clone(encoded)
		for ; len(edits) >= 3; edits = edits[3:] {
			b[(int(edits[0])|int(edits[1])<<8)%len(b)] ^= edits[2]
		}
		x, err := Parse(b, pageSize, dataEnd)
		if err != nil {
			return
		}
		defer x.Free() //nolint:errcheck // nothing to be done
		end := int64(0)
		for i := range x.Pages() {
			l := x.Location(i)
			if l.Offset() < end || l.Length() < pageSize || l.end() > dataEnd {
				t.Fatalf("page %d has %d bytes at %d", i, l.Length(), l.Offset())
			}
			end = l.end()
		}
		for _, key := range keys {
			rest, _ := x.CutPrefix(key)
			group := x.Find(rest)
			first, behind := x.Bounds(group)
			if page, l := x.Page(group, xxhash.Sum64(key)); page >= 0 && (page < first || page >= behind || l != x.Location(page)) {
				t.Fatalf("page %d of %d to %d, at %v", page, first, behind, l)
			}
		}
	})
}
