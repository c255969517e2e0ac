// Package blocktest has what the tests of blocks and of the packages below it share.
package blocktest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"sequins/test/expect"
)

// KeyShapes are families of keys that strain the index: shared prefixes, ties in the first eight
// bytes, zeros at the end, lengths from 0 on.
var KeyShapes = map[string]func(rng *rand.Rand, i int) []byte{
	"hex":  func(rng *rand.Rand, _ int) []byte { return fmt.Appendf(nil, "%016x", rng.Uint64()) },
	"user": func(_ *rand.Rand, i int) []byte { return fmt.Appendf(nil, "user:%012d", i*7) },
	"url": func(rng *rand.Rand, i int) []byte {
		return fmt.Appendf(nil, "https://host%d.example.com/a/%d", rng.IntN(3), i)
	},
	"zeros":    func(rng *rand.Rand, _ int) []byte { return make([]byte, rng.IntN(2000)) },
	"zeroTail": func(rng *rand.Rand, _ int) []byte { return append([]byte("abc"), make([]byte, rng.IntN(30))...) },
	"binary": func(rng *rand.Rand, _ int) []byte {
		b := make([]byte, rng.IntN(24))
		for i := range b {
			b[i] = byte(rng.IntN(3) * 127)
		}
		return b
	},
	"high": func(rng *rand.Rand, _ int) []byte { return bytes.Repeat([]byte{0xff}, rng.IntN(3000)) },
	"short": func(rng *rand.Rand, _ int) []byte {
		return binary.BigEndian.AppendUint16(nil, uint16(rng.Uint32()))[:1+rng.IntN(2)]
	},
	"long": func(rng *rand.Rand, i int) []byte {
		return append(bytes.Repeat([]byte("k"), 1000+rng.IntN(200)), fmt.Sprint(i)...)
	},
}

// Descriptors counts the descriptors of this process on files below dir, and maps those that lie there.
func Descriptors(t testing.TB, dir string) (n int) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	expect.NoError(t, err)
	for _, e := range entries {
		name, err := os.Readlink(filepath.Join("/proc/self/fd", e.Name()))
		if err == nil && filepath.Dir(name) == dir {
			n++
		}
	}
	return n
}

// Sections returns the offset of a byte in each part of the file of a block, by the name of the part (docs/FORMAT.md). Parts without bytes are left out.
func Sections(file []byte) map[string]int {
	const footerSize = 112
	footer := file[len(file)-footerSize:]
	parts := map[string]int{"first page": 0, "footer": len(file) - footerSize/2, "magic": len(file) - 1}
	for i, name := range []string{"index", "filter", "symbols", "properties"} {
		offset, length := binary.LittleEndian.Uint64(footer[16*i:]), binary.LittleEndian.Uint64(footer[16*i+8:])
		if length > 0 {
			parts[name] = int(offset + length/2)
		}
		if i == 0 {
			parts["last page"] = int(offset) - 1
		}
	}
	return parts
}
