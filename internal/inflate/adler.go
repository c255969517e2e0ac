package inflate

import "encoding/binary"

const (
	adlerMod = 65521
	// adlerMax is how many bytes can be summed up before the second sum needs more than 64 bits; in fact far more can.
	adlerMax = 1 << 20

	// Masks and factors for eight bytes at a time, as four lanes of 16 bits. A product has the sum of the lanes, each
	// times one of the factors, in its highest lane; of 255·(8+6+4+2) there is no carry.
	adlerLanes = 0x00ff00ff00ff00ff
	adlerOnes  = 0x0001000100010001
	adlerEven  = 0x0008000600040002
	adlerOdd   = 0x0007000500030001
)

// Adler32 returns the checksum of zlib (RFC 1950). It does what package hash/adler32 does, two times as fast.
func Adler32(b []byte) uint32 {
	s1, s2 := uint64(1), uint64(0)
	for len(b) > 0 {
		part := b[:min(len(b), adlerMax)]
		b = b[len(part):]
		for len(part) >= 8 {
			x := binary.LittleEndian.Uint64(part)
			even, odd := x&adlerLanes, x>>8&adlerLanes
			s2 += s1*8 + even*adlerEven>>48 + odd*adlerOdd>>48
			s1 += (even + odd) * adlerOnes >> 48
			part = part[8:]
		}
		for _, c := range part {
			s1 += uint64(c)
			s2 += s1
		}
		s1 %= adlerMod
		s2 %= adlerMod
	}
	return uint32(s2<<16 | s1)
}
