// Package noise has random data for tests.
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

// Random returns n bytes that no codec makes smaller, the same ones each time for a seed below 65,536.
func Random(seed, n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)}).Read(b) // it never fails
	return b
}
