// Package unpack decompresses what untrusted files contain, in memory that grows with what comes out and ends at a limit: no size
// that a file claims is allocated before it has been compared with what there is, but for the window of [Zstd].
package unpack

import (
	"errors"
	"fmt"
	"slices"

	"github.com/golang/snappy" // the decoders of klauspost/compress accept copies of offset 0, and some files have no checksums
	"github.com/pierrec/lz4/v4"
)

// A Decoder appends what src decompresses to to dst. More than limit bytes are an error.
type Decoder func(dst, src []byte, limit int) ([]byte, error)

// TooLong is the error for what decompresses to more than limit bytes.
func TooLong(limit int) error { return fmt.Errorf("decompressed size exceeds %d bytes", limit) }

// Grow makes room for n more bytes in dst. It at least doubles the capacity, so that growing to a size costs as much as
// copying twice that size.
func Grow(dst []byte, n int) []byte {
	if n <= cap(dst)-len(dst) {
		return dst
	}
	return slices.Grow(dst, max(n, len(dst)))
}

// snappyExpansion is snappy's maximum expansion: 64 bytes for 3.
const snappyExpansion = 64.0 / 3

// Snappy appends what a raw snappy block decompresses to to dst. More than limit bytes are an error.
func Snappy(dst, src []byte, limit int) ([]byte, error) {
	n, err := snappy.DecodedLen(src)
	if err != nil {
		return dst, err
	}
	if n > limit || float64(n) > snappyExpansion*float64(len(src)) {
		return dst, fmt.Errorf("%d bytes have a decompressed size of %d, and can have %d at most", len(src), n, min(limit, int(snappyExpansion*float64(len(src)))))
	}
	dst = Grow(dst, n)
	_, err = snappy.Decode(dst[len(dst):len(dst)+n], src)
	return dst[:len(dst)+n], err
}

// lz4Guess is the first guess of a block's decompressed size, which lz4 does not store, if dst has no room for more: Hadoop's buffer.
const lz4Guess = 256 << 10

// LZ4 appends what a raw lz4 block decompresses to to dst. More than limit bytes are an error.
func LZ4(dst, src []byte, limit int) ([]byte, error) {
	limit = min(limit, 255*len(src)) // lz4's maximum expansion
	for room := min(limit, max(lz4Guess, cap(dst)-len(dst))); ; room = min(limit, 4*room) {
		dst = Grow(dst, room)
		n, err := lz4.UncompressBlock(src, dst[len(dst):len(dst)+room])
		if err == nil {
			return dst[:len(dst)+n], nil
		}
		if room == limit {
			return dst, errors.New("lz4: bad block")
		}
	}
}
