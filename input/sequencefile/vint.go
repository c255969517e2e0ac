package sequencefile

import "math"

// Hadoop's variable-length integers (WritableUtils.writeVInt): one byte for -112 … 127; otherwise a byte that gives the
// sign and the number of bytes (-113 … -120: positive, 1 to 8 bytes; -121 … -128: the complement of a negative number),
// and the bytes, big-endian.

// maxVIntLen is the length of the longest vint that can be the length of something. Hadoop writes no leading zeros; with
// them a vint could be longer.
const maxVIntLen = 5

// decodeLength reads a vint that is a length, 0 … 2³¹-1, from the start of b, and returns it with the number of bytes
// that it takes. That number is 0 if b ends within the vint, and -1 if it is not a length.
func decodeLength(b []byte) (v, n int) {
	if len(b) == 0 {
		return 0, 0
	}
	first := int8(b[0])
	if first >= 0 {
		return int(first), 1
	}
	size := -113 - int(first) // bytes that follow, less one
	if size < 0 || size+2 > maxVIntLen {
		return 0, -1 // negative, or longer than a length is
	}
	if len(b) < size+2 {
		return 0, 0
	}
	var x uint64
	for _, c := range b[1 : size+2] {
		x = x<<8 | uint64(c)
	}
	if x > math.MaxInt32 {
		return 0, -1
	}
	return int(x), size + 2
}
