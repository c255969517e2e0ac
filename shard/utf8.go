package shard

// replacement is U+FFFD, which a decoder substitutes for invalid UTF-8.
const replacement = 0xfffd

// decodeRune decodes the first code point of key, which is not empty, as
// java.lang.String decodes UTF-8, and returns its size in bytes. It differs from
// Go's decoder for invalid UTF-8: Go returns one U+FFFD for each byte, Java one
// for each maximal prefix of a character. Java also decodes an encoded surrogate,
// which UTF-8 forbids, as one invalid character of three bytes, while the Unicode
// standard recommends three of one byte.
func decodeRune(key []byte) (r uint32, size int) {
	b := key[0]
	switch {
	case b < 0x80:
		return uint32(b), 1
	case b < 0xc2: // a stray continuation byte, or an overlong encoding
		return replacement, 1
	case b < 0xe0:
		return decode2(key)
	case b < 0xf0:
		return decode3(key)
	case b < 0xf5:
		return decode4(key)
	}
	return replacement, 1
}

func decode2(key []byte) (uint32, int) {
	if len(key) < 2 || !continues(key[1]) {
		return replacement, 1
	}
	return uint32(key[0]&0x1f)<<6 | uint32(key[1]&0x3f), 2
}

func decode3(key []byte) (uint32, int) {
	switch {
	case len(key) < 2 || !continues(key[1]) || key[0] == 0xe0 && key[1] < 0xa0:
		return replacement, 1
	case len(key) < 3 || !continues(key[2]):
		return replacement, 2
	}
	r := uint32(key[0]&0x0f)<<12 | uint32(key[1]&0x3f)<<6 | uint32(key[2]&0x3f)
	if r&0xf800 == 0xd800 {
		r = replacement
	}
	return r, 3
}

func decode4(key []byte) (uint32, int) {
	switch {
	case len(key) < 2 || !continues(key[1]) ||
		key[0] == 0xf0 && key[1] < 0x90 || key[0] == 0xf4 && key[1] > 0x8f:
		return replacement, 1
	case len(key) < 3 || !continues(key[2]):
		return replacement, 2
	case len(key) < 4 || !continues(key[3]):
		return replacement, 3
	}
	return uint32(key[0]&0x07)<<18 | uint32(key[1]&0x3f)<<12 |
		uint32(key[2]&0x3f)<<6 | uint32(key[3]&0x3f), 4
}

func continues(b byte) bool { return b&0xc0 == 0x80 }
