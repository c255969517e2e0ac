package blocks

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"sequins/test/blocktest"
)

// TestPagesOfOneRecord holds a block whose pages have one record each to 3 bytes of memory a key, and a hit to one read.
func TestPagesOfOneRecord(t *testing.T) {
	rng := rand.New(rand.NewPCG(35, 3))
	for _, name := range []string{"hex", "user", "url"} {
		records := makeRecords(rng, blocktest.KeyShapes[name], 5000, 0)
		for i := range records {
			records[i].value = make([]byte, 4096)
		}
		r := openBytes(t, buildBlock(t, records, WriterOptions{Compression: None}))
		if n := r.Properties().Pages; n != len(records) {
			t.Fatalf("%s: %d pages of %d records", name, n, len(records))
		}
		most := 3.0
		if name == "url" {
			most = 4 // a group has a long separator, too
		}
		if a := float64(r.IndexMemory()) / float64(len(records)); a > most+16<<10/float64(len(records)) { // beside the coder
			t.Errorf("%s: the index takes %.2f bytes a key", name, a)
		}
		var s Scratch
		for i := range 2000 {
			if _, ok, err := r.Get(records[i*7%len(records)].key, &s); !ok || err != nil {
				t.Fatal(ok, err)
			}
		}
		if s.Reads() != 2000 {
			t.Errorf("%s: 2000 hits have read %d pages", name, s.Reads())
		}
		checkBlock(t, r, records, rng)
	}
}

// TestPagesOfFewRecords checks blocks with small, larger and large values, whose pages have many records, few and one.
func TestPagesOfFewRecords(t *testing.T) {
	for name, shape := range blocktest.KeyShapes {
		for _, c := range []Compression{None, FSST, Zstd} {
			t.Run(fmt.Sprintf("%s/%v", name, c), func(t *testing.T) {
				t.Parallel()
				rng := rand.New(rand.NewPCG(36, uint64(len(name))))
				records := makeRecords(rng, shape, 400, 3000)
				for i := range records {
					switch {
					case i%100 < 50:
						records[i].value = records[i].value[:min(len(records[i].value), 20)]
					case i%100 == 80:
						records[i].value = make([]byte, LargeValue+1)
					}
				}
				b := buildBlock(t, records, WriterOptions{Compression: c})
				checkBlock(t, openBytes(t, b), records, rng)
				r := openFile(t, b)
				checkBlock(t, r, records, rng)
				checkBatch(t, r, records, rng, &BatchScratch{})
			})
		}
	}
}
