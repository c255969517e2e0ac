// Package noise has data for tests of compression.
package noise

import "math/rand/v2"

// Bytes returns n bytes, partly compressible.
func Bytes(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		switch {
		case i%64 < 24:
			b[i] = byte(rng.Uint32())
		case i%64 < 48:
			b[i] = "abcdefgh"[rng.IntN(8)]
		default:
			b[i] = 'z'
		}
	}
	return b
}
