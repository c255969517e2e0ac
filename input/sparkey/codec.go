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

var errBlockTooLong = errors.New("decompressed size exceeds the compression block size")

// maxCompressed returns the maximum compressed size of n bytes: snappy's bound, with a constant for zstd's headers.
func maxCompressed(n int) int { return 64 + n + n/6 }

// newDecoder returns the function that appends a decompressed block of at most limit bytes to dst, or nil without
// compression, and a function that releases the decoder.
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
	if n > 64*len(src) { // three bytes give at most 64: checked before allocating
		return nil, fmt.Errorf("%d bytes cannot decompress to %d", len(src), n)
	}
	end := len(dst)
	dst = slices.Grow(dst, n)[:end+n]
	if _, err := snappy.Decode(dst[end:], src); err != nil {
		return nil, err
	}
	return dst, nil
}

// zstdDecoders are only used with DecodeAll, so they have no goroutines and need no Close.
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
	// DecodeAll itself would grow dst only by what each block needs.
	dst = slices.Grow(dst, min(most, limit))
	out, err := d.DecodeAll(src, dst[len(dst):]) // its limit includes the existing bytes
	if err != nil {
		return nil, err
	}
	if len(out) > limit {
		return nil, errBlockTooLong
	}
	return append(dst, out...), nil // already in place if the capacity was sufficient
}
