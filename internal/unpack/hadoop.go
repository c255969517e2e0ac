package unpack

import (
	"encoding/binary"
	"errors"
	"io"
	"math"
)

// emptyChunk is what some writers write after the length of an empty block, where Hadoop writes nothing: a chunk of
// length 1 with an empty snappy or lz4 block.
const emptyChunk = "\x00\x00\x00\x01\x00"

var (
	errChunkLength = errors.New("a chunk has an impossible length")
	errTrailing    = errors.New("data after its end")
)

// Hadoop returns a Decoder of chunks that chunk decompresses, which is [Snappy] or [LZ4]. Hadoop writes formats without a stream format as
// blocks of chunks (BlockCompressorStream):
//
//	block length     int32: decompressed bytes in the chunks up to the next block; 0 ends the stream
//	chunk length     int32: compressed bytes
//	chunk            one raw snappy or lz4 block
//	…
//
// Hadoop's chunks hold at most its buffer, by default 256 KiB; other writers put a whole value or column into one.
func Hadoop(chunk Decoder) Decoder {
	return func(dst, src []byte, limit int) ([]byte, error) { return hadoop(dst, src, limit, chunk) }
}

func hadoop(dst, src []byte, limit int, chunk Decoder) (_ []byte, err error) {
	end := len(dst) + limit
	for len(src) > 0 {
		var left, n int
		if left, src, err = hadoopLength(src); err != nil {
			return dst, err
		}
		if left == 0 && len(src) > 0 && string(src) != emptyChunk {
			return dst, errTrailing
		}
		if left == 0 {
			return dst, nil
		}
		if left > end-len(dst) {
			return dst, TooLong(limit)
		}
		for left > 0 {
			if n, src, err = hadoopLength(src); err != nil {
				return dst, err
			}
			if n > len(src) {
				return dst, io.ErrUnexpectedEOF
			}
			before := len(dst)
			if dst, err = chunk(dst, src[:n], left); err != nil {
				return dst, err
			}
			if len(dst) == before {
				return dst, errChunkLength
			}
			src = src[n:]
			left -= len(dst) - before
		}
	}
	return dst, nil
}

func hadoopLength(src []byte) (n int, rest []byte, err error) {
	if len(src) < 4 {
		return 0, nil, io.ErrUnexpectedEOF
	}
	if v := binary.BigEndian.Uint32(src); v <= math.MaxInt32 {
		return int(v), src[4:], nil
	}
	return 0, nil, errChunkLength
}
