package blocks

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sequins/blocks/internal/index"
	"sequins/test/blocktest"
	"sequins/test/expect"
)

// small returns a block with several pages and a large value, and its records.
func small(t testing.TB, c Compression) ([]byte, []record) {
	t.Helper()
	records := makeRecords(rand.New(rand.NewPCG(6, 6)), blocktest.KeyShapes["url"], 16, 40)
	records = append(records, record{[]byte("z-large"), bytes.Repeat([]byte("0123456789abcdef"), LargeValue/16+3)}, record{[]byte("zz"), []byte("last")})
	return buildBlock(t, records, WriterOptions{Compression: c, BlockSize: MinBlockSize, Partition: 3, Partitions: 7}), records
}

// readAll asks for every record; what is not refused must be right.
func readAll(t *testing.T, b []byte, records []record) (refused bool) {
	t.Helper()
	r, err := NewReader(bytes.NewReader(b), int64(len(b)), "flipped.block")
	if err != nil {
		return isCorrupt(t, err)
	}
	var s Scratch
	for _, rec := range records {
		v, ok, err := r.Get(rec.key, &s)
		if err == nil && ok {
			var got []byte
			if got, err = valueBytes(v); err == nil && !bytes.Equal(got, rec.value) {
				t.Fatalf("wrong value for %q", rec.key)
			}
		} else if err == nil {
			t.Fatalf("%q is not found", rec.key)
		}
		if err != nil {
			refused = isCorrupt(t, err) || refused
		}
	}
	if err := r.Verify(context.Background()); err != nil {
		return isCorrupt(t, err)
	}
	return refused
}

func isCorrupt(t *testing.T, err error) bool {
	t.Helper()
	if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "flipped.block") {
		t.Fatalf("not ErrCorrupt with the file's name: %v", err)
	}
	return true
}

// TestEveryBitFlipped flips each bit of a small block in turn, or one of each byte if its pages are compressed: an error that names
// the file, or the right values, never a wrong one. Only the padding between pages may go unnoticed.
func TestEveryBitFlipped(t *testing.T) {
	for _, c := range []Compression{None, FSST, Zstd} {
		t.Run(c.String(), func(t *testing.T) {
			t.Parallel()
			_, records := small(t, c)
			records = slices.DeleteFunc(records, func(r record) bool { return len(r.value) > LargeValue })
			b := buildBlock(t, records, WriterOptions{Compression: c, BlockSize: MinBlockSize})
			covered := coverage(t, b)
			for bit := range 8 * len(b) {
				if c == None || bit%8 == bit/8%8 {
					flip(t, b, bit, records, covered)
				}
			}
		})
	}
}

// TestBitsOfLargeValueFlipped does so with a block that is one large value: one bit of each byte,
// and of the value's own bytes one in 101 where they are not packed.
func TestBitsOfLargeValueFlipped(t *testing.T) {
	for _, c := range []Compression{None, FSST, Zstd} {
		t.Run(c.String(), func(t *testing.T) {
			t.Parallel()
			records := []record{{[]byte("large"), bytes.Repeat([]byte("0123456789abcdef"), LargeValue/16+3)}}
			b := buildBlock(t, records, WriterOptions{Compression: c})
			covered := coverage(t, b)
			for at := range b {
				if c != None || at >= LargeValue || at%101 == 0 {
					flip(t, b, 8*at+at%8, records, covered)
				}
			}
		})
	}
}

// flip flips a bit, sees that it is noticed, and flips it back.
func flip(t *testing.T, b []byte, bit int, records []record, covered []bool) {
	t.Helper()
	b[bit/8] ^= 1 << (bit % 8)
	if !readAll(t, b, records) && covered[bit/8] {
		t.Fatalf("bit %d of byte %d flipped, and nobody noticed", bit%8, bit/8)
	}
	b[bit/8] ^= 1 << (bit % 8)
}

// coverage says of each byte of a block whether it is anything but padding.
func coverage(t *testing.T, b []byte) []bool {
	t.Helper()
	r := openBytes(t, b)
	covered := make([]bool, len(b))
	mark := func(from, n int64) {
		for i := range n {
			covered[from+i] = true
		}
	}
	mark(r.footer.index.offset, r.size-r.footer.index.offset)
	for i := range r.index.Pages() {
		l := r.index.Location(i)
		mark(l.Offset(), int64(l.Length()))
	}
	for it := r.Iter(nil, nil); it.Next(); {
		if v := it.Value().large; v != nil {
			for _, c := range v.chunks {
				mark(c.at, int64(c.n))
			}
		}
	}
	return covered
}

func TestTruncatedAnywhere(t *testing.T) {
	b, _ := small(t, FSST)
	for n := range b {
		// A file cut short, and one that is shorter than it was when it was opened.
		for _, size := range []int{n, len(b)} {
			r, err := NewReader(bytes.NewReader(b[:n]), int64(size), "flipped.block")
			if err == nil {
				t.Fatalf("the first %d of %d bytes pass for a block of %d records", n, len(b), r.Properties().Records)
			}
			isCorrupt(t, err)
		}
	}
}

func TestPagesSwapped(t *testing.T) {
	records := makeRecords(rand.New(rand.NewPCG(7, 7)), blocktest.KeyShapes["user"], 200, 0)
	b := buildBlock(t, records, WriterOptions{Compression: None, BlockSize: 512})
	r := openBytes(t, b)
	x, y := r.index.Location(1), r.index.Location(2)
	if x.Length() != y.Length() {
		t.Fatalf("pages of %d and %d bytes cannot change places", x.Length(), y.Length())
	}
	p, q := b[x.Offset():][:x.Length()], b[y.Offset():][:y.Length()]
	saved := bytes.Clone(p)
	copy(p, q)
	copy(q, saved)
	var s Scratch
	refused := 0
	for _, rec := range records {
		if _, ok, err := r.Get(rec.key, &s); errors.Is(err, ErrCorrupt) {
			refused++
		} else if err != nil || !ok {
			t.Fatal(ok, err)
		}
	}
	if refused == 0 {
		t.Fatal("two pages changed places, and nobody noticed")
	}
}

// TestPageIsVerifiedOnFirstUse damages a file on disk, so that a mapped reader must find it.
func TestPageIsVerifiedOnFirstUse(t *testing.T) {
	b, records := small(t, None)
	path := filepath.Join(t.TempDir(), "flipped.block")
	b[10] ^= 4
	expect.NoError(t, os.WriteFile(path, b, 0o644))
	r, err := Open(path)
	expect.NoError(t, err)
	defer r.Close()
	var s Scratch
	_, _, err = r.Get(records[0].key, &s)
	var c *CorruptError
	if !errors.As(err, &c) || c.Page != 0 || c.Path != path {
		t.Fatalf("Get from a damaged page: %v", err)
	}
}

var update = flag.Bool("update", false, "write the golden files")

// TestGolden reads blocks of each format version, and sees that those of the current one are still written the same. Of an addition that every
// release of the version can read, new golden files are enough; otherwise formatVersion is raised, and the old files stay.
func TestGolden(t *testing.T) {
	for _, c := range []Compression{None, FSST, Zstd} {
		records := append(makeRecords(rand.New(rand.NewPCG(8, 8)), blocktest.KeyShapes["url"], 60, 30), record{[]byte("z"), make([]byte, LargeValue+1)})
		b := buildBlock(t, records, WriterOptions{Compression: c, BlockSize: 512, Partition: 3, Partitions: 7})
		path := filepath.Join("testdata", "golden", "v1-"+c.String()+".block")
		if *update {
			expect.NoError(t, os.WriteFile(path, b, 0o644))
		}
		stored, err := os.ReadFile(path)
		expect.NoError(t, err)
		checkBlock(t, openBytes(t, stored), records, rand.New(rand.NewPCG(8, 8)))
		if c == None && !bytes.Equal(stored, b) {
			t.Errorf("%s: the writer's output has changed: run this test with -update if all releases read it, or raise formatVersion", path)
		}
	}
}

// FuzzReader edits good blocks, three bytes an edit: where, and what to xor there. Checksums are
// mended afterwards, so that the fuzzer gets past them.
func FuzzReader(f *testing.F) {
	var blocks [][]byte
	for _, c := range []Compression{None, FSST, Zstd} {
		records := makeRecords(rand.New(rand.NewPCG(9, 9)), blocktest.KeyShapes["url"], 20, 20)
		records = append(records, record{[]byte("z"), make([]byte, LargeValue+1)})
		blocks = append(blocks, buildBlock(f, records, WriterOptions{Compression: c, BlockSize: MinBlockSize}))
		f.Add(byte(c), true, []byte{})
		f.Add(byte(c), false, []byte{3, 0, 8, 200, 1, 255})
	}
	f.Fuzz(func(t *testing.T, which byte, fromEnd bool, edits []byte) {
		b := bytes.Clone(blocks[int(which)%len(blocks)])
		for ; len(edits) >= 3; edits = edits[3:] {
			at := int(edits[0]) | int(edits[1])<<8
			if fromEnd {
				at = len(b) - 1 - at
			}
			if at >= 0 && at < len(b) {
				b[at] ^= edits[2]
			}
		}
		mend(b)
		exercise(t, b)
	})
}

// FuzzOpen opens arbitrary bytes.
func FuzzOpen(f *testing.F) {
	f.Add(buildBlock(f, nil, WriterOptions{}))
	f.Fuzz(func(t *testing.T, b []byte) {
		b = bytes.Clone(b)
		mend(b)
		exercise(t, b)
	})
}

// exercise uses a block in every way: what goes wrong must be ErrCorrupt.
func exercise(t *testing.T, b []byte) {
	t.Helper()
	r, err := NewReader(bytes.NewReader(b), int64(len(b)), "fuzz.block")
	onlyCorrupt(t, err)
	if err != nil {
		return
	}
	var s Scratch
	for _, key := range [][]byte{nil, []byte("a"), []byte("z"), r.props.FirstKey, r.props.LastKey, r.index.Prefix()} {
		v, ok, err := r.Get(key, &s)
		if err == nil && ok {
			_, err = valueBytes(v)
		}
		onlyCorrupt(t, err)
	}
	it := r.Iter([]byte("https"), nil)
	for it.Next() {
		_ = it.Key()
	}
	onlyCorrupt(t, it.Err())
	onlyCorrupt(t, r.Verify(context.Background()))
}

func onlyCorrupt(t *testing.T, err error) {
	t.Helper()
	if err != nil && !errors.Is(err, ErrCorrupt) {
		t.Fatalf("not ErrCorrupt: %v", err)
	}
}

// mend puts right the checksums of the footer, the sections and the pages, where they can be found.
func mend(b []byte) {
	if len(b) < footerSize {
		return
	}
	foot := b[len(b)-footerSize:]
	mendCRC(foot[:footerSize-len(magic)])
	f, err := parseFooter(foot, int64(len(b)))
	if err != nil {
		return
	}
	if x, err := index.Parse(b[f.index.offset:][:f.index.length], trailerSize, f.index.offset); err == nil {
		for i := range x.Pages() {
			l := x.Location(i)
			stored := b[l.Offset():][:l.Length()]
			n := len(stored) - 4
			c := checksum(stored[:n], uint32(i))
			copy(stored[n:], []byte{byte(c), byte(c >> 8), byte(c >> 16), byte(c >> 24)})
		}
	}
	var sums footer
	for i, s := range f.sections() {
		sums.sections()[i].offset = s.offset
		sums.sections()[i].update(b[s.offset:][:s.length])
	}
	copy(foot, sums.appendTo(nil))
}

// mendCRC sets the last four bytes to the checksum of those before them.
func mendCRC(b []byte) {
	var s section
	s.update(b[:len(b)-4])
	copy(b[len(b)-4:], []byte{byte(s.crc), byte(s.crc >> 8), byte(s.crc >> 16), byte(s.crc >> 24)})
}
