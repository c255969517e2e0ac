// Package mutate damages files for tests of their readers: it flips bits, writes extreme values where lengths may be,
// and truncates. The damage depends only on a seed.
//
// The number of damaged files per test is a flag: go test ./input/avro -run Mutations -mutations 10000.
package mutate

import (
	"bytes"
	"encoding/binary"
	"flag"
	"math/rand/v2"
	"runtime/metrics"
	"testing"
)

var count = flag.Int("mutations", 300, "number of damaged files per test")

// File is a damaged file.
type File struct {
	Data  []byte
	First int  // offset of the first byte that may differ
	Cut   bool // the file is truncated and otherwise unchanged
}

// Run calls check with damaged copies of the files in turn, each with its own seed, and fails the test if check
// allocates more bytes than limit returns. check must not retain Data.
func Run(t *testing.T, files [][]byte, limit func(size int) uint64, check func(t *testing.T, original int, f File)) {
	t.Helper()
	for seed := range uint64(*count) {
		i := int(seed % uint64(len(files)))
		f := damage(rand.New(rand.NewPCG(seed, 77)), files[i])
		before := allocated()
		check(t, i, f)
		if n := allocated() - before; n > limit(len(f.Data)) {
			t.Errorf("%d bytes allocated for a file of %d", n, len(f.Data))
		}
		if t.Failed() {
			t.Fatalf("file %d damaged by seed %d", i, seed)
		}
	}
}

func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// extremes are invalid lengths in the encodings of the formats: fixed, big- and little-endian, and the variable-length
// ones of Avro, Sparkey and Hadoop.
var extremes = func() (all [][]byte) {
	for _, n := range []uint64{0, 1, 0x7f, 0x80, 0xff, 0xffff, 1 << 24, 1<<31 - 1, 1 << 31, 1<<32 - 1, 1 << 40, 1<<63 - 1, 1 << 63, 1<<64 - 1} {
		all = append(all, binary.BigEndian.AppendUint64(nil, n), binary.LittleEndian.AppendUint64(nil, n),
			binary.BigEndian.AppendUint32(nil, uint32(n)), binary.LittleEndian.AppendUint32(nil, uint32(n)),
			binary.AppendUvarint(nil, n), binary.AppendVarint(nil, int64(n)),
			append([]byte{0x8c}, binary.BigEndian.AppendUint32(nil, uint32(n))...), append([]byte{0x88}, binary.BigEndian.AppendUint64(nil, n)...))
	}
	return all
}()

// damage returns a copy of a file with one to four changes of one kind.
func damage(rng *rand.Rand, file []byte) File {
	if rng.IntN(4) == 0 {
		n := rng.IntN(len(file))
		return File{bytes.Clone(file[:n]), n, true}
	}
	f := File{Data: bytes.Clone(file), First: len(file)}
	flip := rng.IntN(2) == 0
	for range 1 + rng.IntN(4) {
		at := place(rng, len(file))
		f.First = min(f.First, at)
		if flip {
			f.Data[at] ^= 1 << rng.IntN(8)
		} else {
			copy(f.Data[at:], extremes[rng.IntN(len(extremes))])
		}
	}
	return f
}

// place returns a random offset, half of the time near the start or the end, where headers and footers are.
func place(rng *rand.Rand, size int) int {
	near := min(size, 256)
	switch rng.IntN(4) {
	case 0:
		return rng.IntN(near)
	case 1:
		return size - 1 - rng.IntN(near)
	}
	return rng.IntN(size)
}
