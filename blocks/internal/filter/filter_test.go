package filter

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
	"os"
	"testing"

	"sequins/test/expect"
)

// parse returns the filter of a section.
func parse(b []byte) (*Filter, error) {
	s, err := NewScanner(b[max(len(b)-4, 0):], int64(len(b)), true)
	if err != nil {
		return nil, err
	}
	s.Add(b)
	return s.Filter()
}

// encodeFilter builds a filter, in memory where dir is "".
func encodeFilter(t testing.TB, dir string, hashes []uint64) []byte {
	t.Helper()
	b := NewBuilder(dir)
	for _, h := range hashes {
		expect.NoError(t, b.Add(h))
	}
	var out bytes.Buffer
	expect.NoError(t, b.WriteTo(func(p []byte) error { out.Write(p); return nil }))
	return out.Bytes()
}

func openFilter(t testing.TB, b []byte) *Filter {
	t.Helper()
	f, err := parse(b)
	expect.NoError(t, err)
	return f
}

// contains is false only for keys that are not in the block.
func (f *Filter) contains(hash uint64) bool {
	p := f.Locate(hash)
	passes, known := p.Known()
	return passes || !known && f.Contains(p)
}

func randomHashes(rng *rand.Rand, n int) []uint64 {
	hashes := make([]uint64, n)
	for i := range hashes {
		hashes[i] = rng.Uint64()
	}
	return hashes
}

// passed is how many of n random hashes pass.
func passed(f *Filter, rng *rand.Rand, n int) (count int) {
	for range n {
		if f.contains(rng.Uint64()) {
			count++
		}
	}
	return count
}

func TestFilter(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	for _, n := range []int{1, 2, 7, 63, 64, 65, 128, 1000, 4096, 32768, 32769, 100_000, 1_000_003} {
		hashes := randomHashes(rng, n)
		b := encodeFilter(t, "", hashes)
		f := openFilter(t, b)
		for i, h := range hashes {
			if !f.contains(h) {
				t.Fatalf("hash %d of %d, %x, does not pass", i, n, h)
			}
		}
		const asked = 1_000_000
		if share := float64(passed(f, rng, asked)) / asked; share > 0.0041 {
			t.Errorf("%d keys: %.3f %% of absent ones pass", n, 100*share)
		}
		if size := float64(8*len(b)) / float64(n); n > 10_000 && size > 10.4 {
			t.Errorf("%d keys: %.2f bits a key", n, size)
		}
	}
	if f := openFilter(t, encodeFilter(t, "", nil)); !f.Empty() || passed(f, rng, 1000) > 0 {
		t.Error("something passes an empty filter")
	}
}

// TestFilterOfMadeUpKeys builds filters of hashes that were chosen to lie together: keys can be made
// whose hashes do. Each must pass, and whatever else does, it is found out in bounded time.
func TestFilterOfMadeUpKeys(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	for _, mask := range []uint64{0, 1<<24 - 1, 1<<40 - 1, 1<<50 - 1, 1<<56 - 1, 0xff << 56} {
		for _, n := range []int{1, 9, 100, 70_000, 300_000} {
			hashes := randomHashes(rng, n)
			for i := range hashes[:n*9/10] {
				hashes[i] = hashes[i]&mask | 0xabcdef_987654_3210&^mask
			}
			f := openFilter(t, encodeFilter(t, "", hashes))
			for i, h := range hashes {
				if !f.contains(h) {
					t.Fatalf("mask %x: hash %d of %d, %x, does not pass", mask, i, n, h)
				}
			}
		}
	}
}

func TestFilterSpills(t *testing.T) {
	hashes := randomHashes(rand.New(rand.NewPCG(15, 16)), 400_000) // more than the bins keep
	dir := t.TempDir()
	if !bytes.Equal(encodeFilter(t, dir, hashes), encodeFilter(t, "", hashes)) {
		t.Error("a filter by way of a file is another than one in memory")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	b := NewBuilder(dir)
	for _, h := range hashes {
		expect.NoError(t, b.Add(h))
	}
	if b.spill.Size() == 0 {
		t.Error("nothing was spilled")
	}
	b.Close()
}

// TestFilterOfRubbish asks filters that are not true to their checksum: the map may show anything.
func TestFilterOfRubbish(t *testing.T) {
	rng := rand.New(rand.NewPCG(17, 18))
	whole := encodeFilter(t, "", randomHashes(rng, 3000))
	tables := 2*int(binary.LittleEndian.Uint32(whole[len(whole)-4:])) + 8 + 4
	for range 2000 {
		b := bytes.Clone(whole)
		for range 1 + rng.IntN(20) {
			b[rng.IntN(len(b))] = byte(rng.Uint32())
		}
		if rng.IntN(2) == 0 { // starts that lead anywhere
			for i := len(b) - tables; i < len(b)-12; i++ {
				b[i] = byte(rng.Uint32())
			}
		}
		if f, err := parse(b); err == nil {
			passed(f, rng, 1000)
		}
	}
	for n := range whole {
		if _, err := parse(whole[:n]); err == nil && n > 4 {
			_, err = parse(append(whole[:n:n], 0xff, 0xff, 0xff, 0xff))
			if err == nil {
				t.Fatalf("%d bytes with a count of 2³²-1 blocks are a filter", n)
			}
		}
	}
}

func TestSelectBit(t *testing.T) {
	rng := rand.New(rand.NewPCG(19, 20))
	for range 100_000 {
		w := rng.Uint64() & (rng.Uint64() | -(rng.Uint64() & 1))
		n := 0
		for left := w; left != 0; left &= left - 1 {
			if got, want := selectBit(w, n), bits.TrailingZeros64(left); got != want {
				t.Fatalf("bit %d of %#x: %d, want %d", n, w, got, want)
			}
			n++
		}
	}
	for n := range 64 {
		if got := selectBit(^uint64(0), n); got != n {
			t.Fatalf("bit %d of all: %d", n, got)
		}
	}
}

func BenchmarkFilterBuild(b *testing.B) {
	hashes := randomHashes(rand.New(rand.NewPCG(21, 22)), 2_500_000)
	dir := b.TempDir()
	for b.Loop() {
		f := NewBuilder(dir)
		for _, h := range hashes {
			_ = f.Add(h)
		}
		_ = f.WriteTo(func([]byte) error { return nil })
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(hashes)), "ns/key")
}

func BenchmarkFilterContains(b *testing.B) {
	rng := rand.New(rand.NewPCG(23, 24))
	hashes := randomHashes(rng, 10_000_000)
	f := openFilter(b, encodeFilter(b, "", hashes))
	rng.Shuffle(len(hashes), func(i, j int) { hashes[i], hashes[j] = hashes[j], hashes[i] })
	for _, c := range []struct {
		name string
		xor  uint64
	}{{"present", 0}, {"absent", 0x5555_5555_5555_5555}} {
		b.Run(c.name, func(b *testing.B) {
			n := 0
			for i := range b.N {
				if f.contains(hashes[i%len(hashes)] ^ c.xor) {
					n++
				}
			}
			b.ReportMetric(float64(n)/float64(b.N), "passed")
		})
	}
}
