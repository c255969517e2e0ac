package shard

import "unicode/utf8"

// All four functions are the polynomial h = 31h + x over a sequence of x, in
// wrapping 32-bit arithmetic.

// hashUnsigned is the polynomial over unsigned bytes, from 0.
func hashUnsigned(key []byte) (h uint32) {
	for _, b := range key {
		h = 31*h + uint32(b)
	}
	return h
}

// hashSigned is the polynomial over signed bytes, from h: 1 for Hadoop, 0 for
// strings of Hive.
func hashSigned(h uint32, key []byte) uint32 {
	for _, b := range key {
		h = 31*h + uint32(int8(b))
	}
	return h
}

// hashUTF16 is Java's String.hashCode of the UTF-8 string key: the polynomial
// over its UTF-16 units, from 0. Strings of Java have no invalid UTF-8; each of
// its bytes counts as U+FFFD.
func hashUTF16(key []byte) (h uint32) {
	for len(key) > 0 {
		c, size := utf8.DecodeRune(key)
		key = key[size:]
		r := uint32(c)
		if r >= 0x10000 {
			r -= 0x10000
			h = 31*h + (0xd800 + r>>10)
			r = 0xdc00 + r&0x3ff
		}
		h = 31*h + r
	}
	return h
}
