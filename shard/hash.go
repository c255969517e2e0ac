package shard

import (
	"encoding/binary"
	"unicode/utf8"
)

// All four functions are the polynomial h = 31h + x over a sequence of x, in
// wrapping 32-bit arithmetic. Computed step by step, each multiplication waits
// for the previous one. Instead, eight bytes at a time are summed as a tree
// inside one 64-bit word: pairs into four 16-bit lanes, these into two 32-bit
// lanes, these into one. No lane overflows: 255·31+255 < 2¹⁴ and 2¹³·961+2¹³ <
// 2²⁴.

// pow8 is 31⁸ mod 2³²; multiplying by it shifts the hash by eight bytes.
const pow8 = 31 * 31 * 31 * 31 * 31 * 31 * 31 * 31 & 0xffffffff

// ones8 is 31⁷ + … + 31 + 1 mod 2³²: the hash of eight bytes of value 1.
const ones8 = (31*31*31*31*31*31*31*31 - 1) / 30 & 0xffffffff

const (
	highBits = 0x8080808080808080
	evenByte = 0x00ff00ff00ff00ff
	evenWord = 0x0000ffff0000ffff
)

// hash8 is the polynomial over the eight bytes of x, lowest first.
func hash8(x uint64) uint32 {
	x = x&evenByte*31 + x>>8&evenByte
	x = x&evenWord*961 + x>>16&evenWord
	return uint32(x)*(961*961) + uint32(x>>32)
}

// hashUnsigned is the polynomial over unsigned bytes, from 0.
func hashUnsigned(key []byte) uint32 {
	var h uint32
	for len(key) >= 8 {
		h = h*pow8 + hash8(binary.LittleEndian.Uint64(key))
		key = key[8:]
	}
	for _, b := range key {
		h = 31*h + uint32(b)
	}
	return h
}

// hashSigned is the polynomial over signed bytes, from h: 1 for Hadoop, 0 for
// strings of Hive. A signed byte is its bits with the top one flipped, less 128.
func hashSigned(h uint32, key []byte) uint32 {
	for len(key) >= 8 {
		h = h*pow8 + hash8(binary.LittleEndian.Uint64(key)^highBits) - 128*ones8&0xffffffff
		key = key[8:]
	}
	for _, b := range key {
		h = 31*h + uint32(int8(b))
	}
	return h
}

// hashUTF16 is Java's String.hashCode of the UTF-8 string key: the polynomial
// over its UTF-16 units, from 0. Strings of Java have no invalid UTF-8; each of
// its bytes counts as U+FFFD.
func hashUTF16(key []byte) uint32 {
	var h uint32
	for len(key) >= 8 {
		x := binary.LittleEndian.Uint64(key)
		if x&highBits != 0 {
			return hashUTF16Slow(h, key)
		}
		h = h*pow8 + hash8(x)
		key = key[8:]
	}
	for i, b := range key {
		if b >= 0x80 {
			return hashUTF16Slow(h, key[i:])
		}
		h = 31*h + uint32(b)
	}
	return h
}

func hashUTF16Slow(h uint32, key []byte) uint32 {
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
