package blocks

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/klauspost/compress/s2"

	"sequins/blocks/internal/fsst"
	"sequins/test/expect"
)

// Blocks of tests are small: they are encoded from early on.
func init() { firstEpoch = 600 }

// kinds are values of the kinds that batch jobs write.
var kinds = map[string]func(rng *rand.Rand) []byte{
	"JSON": func(rng *rand.Rand) []byte {
		return fmt.Appendf(nil, `{"id":"%016x","segment":"%s","score":%d,"recent":["item-%d","item-%d"],"active":%t}`,
			rng.Uint64(), []string{"new", "regular", "premium", "lost"}[rng.IntN(4)], rng.IntN(10_000), rng.IntN(500), rng.IntN(500), rng.IntN(2) == 0)
	},
	"protobuf": func(rng *rand.Rand) []byte { // id, name, e-mail, country, count, time, score
		name := []string{"alice", "bob", "carol", "dave", "erin", "frank", "grace", "heidi"}[rng.IntN(8)]
		b := binary.AppendUvarint([]byte{0x08}, rng.Uint64N(1<<28))
		b = append(append(b, 0x12, byte(len(name))), name...)
		mail := fmt.Sprintf("%s%d@example.com", name, rng.IntN(1000))
		b = append(append(b, 0x1a, byte(len(mail))), mail...)
		b = append(append(b, 0x22, 2), []string{"de", "fr", "us", "jp"}[rng.IntN(4)]...)
		b = binary.AppendUvarint(append(b, 0x28), rng.Uint64N(300))
		b = binary.LittleEndian.AppendUint64(append(b, 0x31), 1_700_000_000+rng.Uint64N(1<<24))
		return binary.LittleEndian.AppendUint32(append(b, 0x3d), 0x3f000000+rng.Uint32N(1<<20))
	},
	"URLs": func(rng *rand.Rand) []byte {
		return fmt.Appendf(nil, "https://www.%s.com/%s/%d/item-%d.html?ref=%s", []string{"example", "shop", "news-site", "library"}[rng.IntN(4)],
			[]string{"articles", "products", "category/books", "users"}[rng.IntN(4)], rng.IntN(1000), rng.IntN(1_000_000), []string{"home", "search", "mail"}[rng.IntN(3)])
	},
	"floats":   func(rng *rand.Rand) []byte { return fmt.Appendf(nil, "%.6f", 100*rng.NormFloat64()) },
	"integers": func(rng *rand.Rand) []byte { return fmt.Appendf(nil, "%d", rng.IntN(100_000)) },
}

// TestSmallerThanSnappy compares blocks with what snappy makes of the same pages, beside the same index and filter. Snappy shortens
// ascending keys, and hardly random ones.
func TestSmallerThanSnappy(t *testing.T) {
	defer func(before int) { firstEpoch = before }(firstEpoch)
	firstEpoch = 32 << 10
	for name, value := range kinds {
		for key, limit := range map[string]float64{"%016x": 0.9, "user:%012d": 1} {
			rng := rand.New(rand.NewPCG(6, 6))
			var records []record
			for i := range 20_000 {
				n := uint64(i)
				if key == "%016x" {
					n = n<<49 | rng.Uint64()>>15
				}
				records = append(records, record{fmt.Appendf(nil, key, n), value(rng)})
			}
			raw := openBytes(t, buildBlock(t, records, WriterOptions{}))
			snappySize := raw.Size() - raw.footer.index.offset
			for i := range raw.props.Pages {
				l := raw.index.Location(i)
				b, err := raw.read(nil, l.Offset(), l.Length())
				expect.NoError(t, err)
				snappySize += int64(min(len(s2.EncodeSnappy(nil, b)), len(b)))
			}
			encoded := openBytes(t, buildBlock(t, records, WriterOptions{Compression: FSST}))
			ratio := float64(encoded.Size()) / float64(snappySize)
			t.Logf("%s, keys %s: %d bytes, %.2f of none, %.2f of snappy", name, key, encoded.Size(), float64(encoded.Size())/float64(raw.Size()), ratio)
			if ratio > limit {
				t.Errorf("%s, keys %s: %.2f of what snappy leaves", name, key, ratio)
			}
			if encoded.props.ContentHash != raw.props.ContentHash {
				t.Errorf("%s: the content hash depends on the coding", name)
			}
		}
	}
}

// TestSymbolsFollowTheData writes values of one kind behind those of another: they get symbols of their own.
func TestSymbolsFollowTheData(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	var records []record
	for i := range 4000 {
		kind := "URLs"
		if i >= 1000 {
			kind = "JSON"
		}
		records = append(records, record{fmt.Appendf(nil, "%08d", i), kinds[kind](rng)})
	}
	b := buildBlock(t, records, WriterOptions{Compression: FSST})
	r := openBytes(t, b)
	if len(r.tables) < 2 {
		t.Errorf("%d tables", len(r.tables))
	}
	checkBlock(t, r, records, rng)
	checkBlock(t, openFile(t, b), records, rng)
}

// TestRandomValuesStayAsTheyAre holds that what cannot be compressed costs nothing.
func TestRandomValuesStayAsTheyAre(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	var records []record
	for i := range 1000 {
		records = append(records, record{fmt.Appendf(nil, "%016x", uint64(i)<<50|rng.Uint64()>>14), nil})
		for range 200 {
			records[i].value = append(records[i].value, byte(rng.Uint32()))
		}
	}
	r := openBytes(t, buildBlock(t, records, WriterOptions{Compression: FSST}))
	if len(r.tables) > 0 {
		t.Errorf("%d tables of symbols for random bytes", len(r.tables))
	}
	checkBlock(t, r, records, rng)
}

// TestOtherSymbols replaces the symbols of a block by others: records that then do not fit are damage, and no panic.
func TestOtherSymbols(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	var records []record
	for i := range 500 {
		records = append(records, record{fmt.Appendf(nil, "%08d", i), kinds["URLs"](rng)})
	}
	b := buildBlock(t, records, WriterOptions{Compression: FSST})
	for _, r := range []*Reader{openBytes(t, b), openFile(t, b)} {
		if len(r.tables) == 0 {
			t.Fatal("no symbols")
		}
		long, _, err := fsst.Parse(append(append([]byte{255}, bytes.Repeat([]byte{8}, 255)...), strings.Repeat("\x80", 8*255)...))
		expect.NoError(t, err)
		for i := range r.tables {
			r.tables[i].table = long
		}
		var s Scratch
		for range 2 {
			for _, rec := range records[100:] {
				if v, found, err := r.Get(rec.key, &s); found || err != nil && !errors.Is(err, ErrCorrupt) {
					t.Fatalf("%q: %q, %v", rec.key, v.Bytes(), err)
				}
			}
		}
		if err := r.Verify(context.Background()); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("Verify: %v", err)
		}
	}
}

func TestParseSymbolsRefuses(t *testing.T) {
	table := "\x01\x01a"
	for name, b := range map[string]string{
		"a first page is cut off": "\x00\x00",
		"a table is cut off":      "\x00\x00\x00\x00\x01\x01",
		"too many tables":         manyTables(fewTables + 1),
		"pages do not ascend":     "\x05\x00\x00\x00" + table + "\x05\x00\x00\x00" + table,
	} {
		if _, err := parseSymbols([]byte(b), 100); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// manyTables are n tables of no symbols.
func manyTables(n int) string {
	var b []byte
	for i := range uint32(n) {
		b = append(binary.LittleEndian.AppendUint32(b, i), 0)
	}
	return string(b)
}

// TestLongValuesShrink writes values longer than a piece of the sample, whose beginnings tell nothing of the rest.
func TestLongValuesShrink(t *testing.T) {
	for _, n := range []int{2000, 60_000} {
		rng := rand.New(rand.NewPCG(10, 10))
		var records []record
		for i := range 2_000_000 / n {
			var v []byte
			for range 512 {
				v = append(v, byte(rng.Uint32()))
			}
			for len(v) < n {
				v = append(v, kinds["JSON"](rng)...)
			}
			records = append(records, record{fmt.Appendf(nil, "%08d", i), v[:n]})
		}
		raw, encoded := buildBlock(t, records, WriterOptions{}), buildBlock(t, records, WriterOptions{Compression: FSST})
		if ratio := float64(len(encoded)) / float64(len(raw)); ratio > 0.65 {
			t.Errorf("values of %d bytes take %.2f of what they take uncompressed", n, ratio)
		}
	}
}

// TestNoTableForNoPage ends a block where an epoch ends.
func TestNoTableForNoPage(t *testing.T) {
	for n := 10; n < 400; n += 10 {
		rng := rand.New(rand.NewPCG(11, 11))
		var records []record
		for i := range n {
			records = append(records, record{fmt.Appendf(nil, "%08d", i), kinds["URLs"](rng)})
		}
		r := openBytes(t, buildBlock(t, records, WriterOptions{Compression: FSST}))
		if len(r.tables) > 0 && r.tables[len(r.tables)-1].first >= r.props.Pages {
			t.Fatalf("%d records: a table from page %d on, of %d", n, r.tables[len(r.tables)-1].first, r.props.Pages)
		}
	}
}
