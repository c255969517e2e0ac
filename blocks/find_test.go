package blocks

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/cespare/xxhash/v2"

	"sequins/test/blocktest"
)

// sameAsPage holds findRecord to the answer of the page, which checks every step by itself.
func sameAsPage(t *testing.T, stored, key []byte, sound bool) {
	t.Helper()
	hash := xxhash.Sum64(key)
	start, end, absent := findRecord(stored, key, candidates(stored, hash))
	if end == 0 && !absent {
		return // left to the page
	}
	p, err := parsePage(stored[:len(stored)-trailerSize], nil, nil)
	if err != nil {
		if !sound && absent {
			return // the page says that it is damaged, where nothing in it is like the key
		}
		t.Fatalf("a page that is none: %v, but %d, %d, %v", err, start, end, absent)
	}
	value, found, err := p.find(key, hash)
	if sound && err != nil {
		t.Fatal(err)
	}
	switch {
	case end > 0 && absent:
		t.Fatal("found and absent")
	case end > 0 && err == nil && (!found || !bytes.Equal(value, stored[start:end])):
		t.Fatalf("%q: bytes %d to %d; the page: %v, %q", key, start, end, found, value)
	case absent && found:
		t.Fatalf("%q is absent; the page has %q", key, value)
	}
}

// TestFindRecordIsThePages asks pages of all sizes for all of their keys, for others, and for keys that agree
// with one of theirs in all but a byte.
func TestFindRecordIsThePages(t *testing.T) {
	fast := 0
	for name, shape := range blocktest.KeyShapes {
		rng := rand.New(rand.NewPCG(15, uint64(len(name)))) // of its own, as they come in any order
		for range 100 {
			records := makeRecords(rng, shape, 1+rng.IntN(90), rng.IntN(120))
			for len(payloadOf(records)) > MaxBlockSize {
				records = records[:len(records)/2]
			}
			stored := append(payloadOf(records), make([]byte, trailerSize)...)
			for _, r := range records {
				if _, end, _ := findRecord(stored, r.key, candidates(stored, xxhash.Sum64(r.key))); end > 0 {
					fast++
				}
				sameAsPage(t, stored, r.key, true)
				other := bytes.Clone(r.key)
				if len(other) > 0 {
					other[rng.IntN(len(other))] ^= 1 << rng.IntN(8)
				}
				sameAsPage(t, stored, other, true)
			}
			if t.Failed() {
				t.Fatal(name)
			}
		}
	}
	if fast < 10000 {
		t.Errorf("only %d records were found without the page", fast)
	}
}

func payloadOf(records []record) []byte {
	p := newPageBuilder(MaxBlockSize)
	for _, r := range records {
		p.add(r.key, r.value, xxhash.Sum64(r.key))
	}
	return p.take()
}

// FuzzFindRecord looks up in anything at all: what is found lies in the page and behind the key, and nothing
// is read beside it, which the race detector's checks of pointers see.
func FuzzFindRecord(f *testing.F) {
	records := makeRecords(rand.New(rand.NewPCG(16, 16)), blocktest.KeyShapes["hex"], 20, 30)
	f.Add(payloadOf(records), records[3].key)
	f.Add(payloadOf(records[:1]), records[0].key)
	f.Add(bytes.Repeat([]byte{64, 0}, 200), []byte("12345678"))
	f.Add(bytes.Repeat([]byte{0xff}, 300), bytes.Repeat([]byte{0xff}, 127))
	f.Fuzz(func(t *testing.T, payload, key []byte) {
		stored := append(bytes.Clone(payload), make([]byte, trailerSize)...)
		mask := candidates(stored, xxhash.Sum64(key))
		likelyRecord(stored, mask)
		start, end, _ := findRecord(stored, key, mask)
		if end > 0 && (start > end || end > len(payload) || !bytes.HasSuffix(stored[:start], key)) {
			t.Fatalf("bytes %d to %d of %d", start, end, len(payload))
		}
		sameAsPage(t, stored, key, false)
	})
}
