package shard

import "unicode/utf8"

// decodeRune decodes the first code point of key, which is not empty, as
// java.lang.String decodes UTF-8, and returns its size in bytes. It differs from
// Go's decoder for invalid UTF-8: Go returns one U+FFFD for each byte, Java one
// for each maximal prefix of a character. Java also decodes an encoded surrogate,
// which UTF-8 forbids, as one invalid character of three bytes, while the Unicode
// standard recommends three of one byte.
func decodeRune(key []byte) (r uint32, size int) {
	c, size := utf8.DecodeRune(key)
	if c == utf8.RuneError && size == 1 {
		size = invalidPrefix(key)
	}
	return uint32(c), size
}

// invalidPrefix returns the size of what Java decodes as one invalid character at the beginning of key.
func invalidPrefix(key []byte) int {
	b := key[0]
	switch {
	case b < 0xe0 || b > 0xf4 || len(key) < 2 || !continues(key[1]):
		return 1
	case b == 0xe0 && key[1] < 0xa0, b == 0xf0 && key[1] < 0x90, b == 0xf4 && key[1] > 0x8f: // overlong, or above U+10FFFF
		return 1
	case len(key) < 3 || !continues(key[2]):
		return 2
	}
	return 3 // a surrogate, or a character of four bytes without the last
}

func continues(b byte) bool { return b&0xc0 == 0x80 }
