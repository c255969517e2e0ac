package sparkey

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"

	"sequins/internal/zstdframe"
)

var errBlockTooLong = errors.New("it decompresses to more than the compression block size")

// maxCompressed is the most bytes that n bytes compress to: snappy's bound, and room for zstd's headers where n is small.
func maxCompressed(n int) int { return 64 + n + n/6 }

// newDecoder returns the function that appends a decompressed block of at most limit bytes to dst, nil if nothing is compressed, and one
// that gives back what it holds.
func newDecoder(c Compression) (decode func(dst, src []byte, limit int) ([]byte, error), release func(), err error) {
	switch c {
	case Snappy:
		return decodeSnappy, func() {}, nil
	case Zstd:
		d, err := zstdDecoder()
		if err != nil {
			return nil, nil, err
		}
		decode = func(dst, src []byte, limit int) ([]byte, error) { return decodeZstd(d, dst, src, limit) }
		return decode, func() { zstdDecoders.Put(d) }, nil
	}
	return nil, func() {}, nil
}

func decodeSnappy(dst, src []byte, limit int) ([]byte, error) {
	n, err := snappy.DecodedLen(src)
	if err != nil {
		return nil, err
	}
	if n > limit {
		return nil, errBlockTooLong
	}
	if n > 64*len(src) { // three bytes make 64 at most: this is checked before memory is claimed
		return nil, fmt.Errorf("%d bytes cannot decompress to %d", len(src), n)
	}
	end := len(dst)
	dst = slices.Grow(dst, n)[:end+n]
	if _, err := snappy.Decode(dst[end:], src); err != nil {
		return nil, err
	}
	return dst, nil
}

// zstdDecoders are used for whole blocks only, by DecodeAll, so they have no goroutines and need no closing.
var zstdDecoders sync.Pool

func zstdDecoder() (*zstd.Decoder, error) {
	if d, ok := zstdDecoders.Get().(*zstd.Decoder); ok {
		return d, nil
	}
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(MaxBlockSize))
}

func decodeZstd(d *zstd.Decoder, dst, src []byte, limit int) ([]byte, error) {
	most, err := zstdframe.Most(src)
	if err != nil {
		return nil, err
	}
	// DecodeAll would grow it by no more than it needs, block after block.
	dst = slices.Grow(dst, min(most, limit))
	out, err := d.DecodeAll(src, dst[len(dst):]) // its limit counts what is there before, too
	if err != nil {
		return nil, err
	}
	if len(out) > limit {
		return nil, errBlockTooLong
	}
	return append(dst, out...), nil // where it lies already, if there was room
}
