package shard

import "math/bits"

// sparkSeed is the seed of Spark's hash expressions, and hiveSeed that of Hive's Murmur3.
const (
	sparkSeed = 42
	hiveSeed  = 104729
)

// murmur3Hive is Murmur3.hash32 of Hive. It differs from MurmurHash3_x86_32 where one of the last bytes is 128 or more: they are
// combined with their signs.
func murmur3Hive(key []byte) uint32 {
	h, rest := murmur3Words(key, hiveSeed)
	var k uint32
	for i, b := range rest {
		k ^= uint32(int8(b)) << (8 * i)
	}
	if len(rest) > 0 {
		h ^= scramble3(k)
	}
	return finish3(h, len(key))
}

// murmur3Spark is Murmur3_x86_32.hashUnsafeBytes of Spark. It differs from MurmurHash3 in the last bytes: each is mixed
// in like a word, with its sign.
func murmur3Spark(key []byte) uint32 {
	h, rest := murmur3Words(key, sparkSeed)
	for _, b := range rest {
		h = mix3(h, uint32(int8(b)))
	}
	return finish3(h, len(key))
}

// murmur3Words mixes the words of key in, and returns the bytes after the last.
func murmur3Words(key []byte, seed uint32) (h uint32, rest []byte) {
	h = seed
	for ; len(key) >= 4; key = key[4:] {
		h = mix3(h, uint32(key[0])|uint32(key[1])<<8|uint32(key[2])<<16|uint32(key[3])<<24)
	}
	return h, key
}

func scramble3(k uint32) uint32 { return bits.RotateLeft32(k*0xcc9e2d51, 15) * 0x1b873593 }

func mix3(h, k uint32) uint32 { return bits.RotateLeft32(h^scramble3(k), 13)*5 + 0xe6546b64 }

// finish3 mixes in the length of the key, in bytes.
func finish3(h uint32, length int) uint32 {
	h ^= uint32(length)
	h = (h ^ h>>16) * 0x85ebca6b
	h = (h ^ h>>13) * 0xc2b2ae35
	return h ^ h>>16
}

// murmur3Int and murmur3Long are Murmur3_x86_32.hashInt and hashLong of Spark.
func murmur3Int(v int32) uint32 { return finish3(mix3(sparkSeed, uint32(v)), 4) }

func murmur3Long(v int64) uint32 {
	return finish3(mix3(mix3(sparkSeed, uint32(v)), uint32(v>>32)), 8)
}

// murmur2 is org.apache.kafka.common.utils.Utils.murmur2: MurmurHash2 with a seed of Kafka's.
func murmur2(key []byte) uint32 {
	const m = 0x5bd1e995
	h := uint32(0x9747b28c) ^ uint32(len(key))
	for ; len(key) >= 4; key = key[4:] {
		k := (uint32(key[0]) | uint32(key[1])<<8 | uint32(key[2])<<16 | uint32(key[3])<<24) * m
		h = h*m ^ (k^k>>24)*m
	}
	for i, b := range key {
		h ^= uint32(b) << (8 * i)
	}
	if len(key) > 0 {
		h *= m
	}
	h = (h ^ h>>13) * m
	return h ^ h>>15
}

// parseNumber parses key as a number of that many bits in the one form in which loads write numbers: decimal, without leading
// zeros or a plus sign. No key is a number of 0 bits.
func parseNumber(key []byte, size int) (v int64, ok bool) {
	if size == 0 {
		return 0, false
	}
	digits := key
	negative := len(key) > 0 && key[0] == '-'
	if negative {
		digits = key[1:]
	}
	if len(digits) == 0 || len(digits) > 19 || digits[0] == '0' && len(key) > 1 {
		return 0, false
	}
	var n uint64 // up to 10¹⁹-1, which fits
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = 10*n + uint64(c-'0')
	}
	most := uint64(1)<<(size-1) - 1
	if negative {
		return -int64(n), n <= most+1
	}
	return int64(n), n <= most
}
