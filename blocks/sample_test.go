package blocks

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"sequins/test/expect"
)

// A sample has keys of the block, ascending, of as many pages as asked for; with all pages it has all keys.
func TestSampleKeys(t *testing.T) {
	for _, n := range []int{0, 1, 50, 3000} {
		var records []record
		for i := range n {
			size := 20
			if i%500 == 7 {
				size = LargeValue + 1
			}
			records = append(records, record{fmt.Appendf(nil, "key-%05d", i), make([]byte, size)})
		}
		r := openBytes(t, buildBlock(t, records, WriterOptions{BlockSize: 512}))
		for _, pages := range []int{1, 3, 1 << 20} {
			var keys [][]byte
			rng := rand.New(rand.NewPCG(uint64(n), uint64(pages)))
			expect.NoError(t, r.SampleKeys(pages, 1<<20, rng, func(k []byte) { keys = append(keys, bytes.Clone(k)) }))
			if !slices.IsSortedFunc(keys, bytes.Compare) || len(slices.CompactFunc(keys, bytes.Equal)) != len(keys) {
				t.Errorf("%d records, %d pages: keys %q", n, pages, keys)
			}
			for _, k := range keys {
				if _, found, err := r.Get(k, new(Scratch)); !found || err != nil {
					t.Errorf("key %q of the sample: %v, %v", k, found, err)
				}
			}
			if all := pages >= r.Properties().Pages; all && len(keys) != n || n > 0 && len(keys) == 0 || !all && len(keys) > n/2 {
				t.Errorf("%d records, %d of %d pages: %d keys", n, pages, r.Properties().Pages, len(keys))
			}
		}
	}
}

// A sample has about as many keys as asked for, and one of each page at least. It ends at damage.
func TestSampleKeysOfPages(t *testing.T) {
	b := buildBlock(t, []record{{[]byte("a"), []byte("1")}, {[]byte("b"), []byte("2")}, {[]byte("c"), []byte("3")}}, WriterOptions{})
	rng := rand.New(rand.NewPCG(1, 1))
	for each, want := range []string{"a", "a", "ab", "abc", "abc"} {
		got := ""
		if err := openBytes(t, b).SampleKeys(9, each, rng, func(k []byte) { got += string(k) }); err != nil || got != want {
			t.Errorf("%d keys: %q, %v", each, got, err)
		}
	}
	b[0] ^= 1
	if err := openBytes(t, b).SampleKeys(9, 9, rng, func([]byte) {}); !errors.Is(err, ErrCorrupt) {
		t.Errorf("of a damaged block: %v", err)
	}
}
