package sequencefile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/golang/snappy" // the decoders of klauspost/compress accept copies of offset 0, and these files have no checksums
	"github.com/pierrec/lz4/v4"
)

// Hadoop writes formats without a stream format, snappy and lz4, as blocks of chunks (BlockCompressorStream):
//
//	block length     int32: decompressed bytes in the chunks up to the next block; 0 ends the stream
//	chunk length     int32: compressed bytes
//	chunk            one raw snappy or lz4 block
//	…
//
// Hadoop's chunks hold at most its buffer, by default 256 KiB; other writers put a whole value or column into one.

// maxChunk bounds the decompressed size of a chunk, in bytes, and with it the memory of a column: lz4 expands up to 255
// times.
const maxChunk = 64 << 20

// emptyChunk is what some writers write after the length of an empty block, where Hadoop writes nothing: a chunk of
// length 1 with an empty snappy or lz4 block.
const emptyChunk = "\x00\x00\x00\x01\x00"

var (
	errChunkLength = errors.New("a chunk has an impossible length")
	errChunk       = errors.New("a chunk is damaged")
	errTrailing    = errors.New("data after its end")
)

// blockDecoder is a decoder for Hadoop's blocks of chunks.
type blockDecoder struct {
	src  []byte
	left int // bytes of the current block that are still to come
	// chunk appends a decompressed chunk, of not more than limit bytes, to dst.
	chunk func(dst, src []byte, limit int) ([]byte, error)
}

func newSnappyDecoder() decoder { return &blockDecoder{chunk: snappyChunk} }
func newLz4Decoder() decoder    { return &blockDecoder{chunk: lz4Chunk} }

func (d *blockDecoder) Reset(src []byte) { d.src, d.left = src, 0 }

func (d *blockDecoder) More(dst []byte) ([]byte, error) {
	if d.left == 0 {
		if err := d.nextBlock(); err != nil {
			return dst, err
		}
	}
	n, err := d.int32()
	if err != nil {
		return dst, err
	}
	if n > len(d.src) {
		return dst, errTruncated
	}
	out, err := d.chunk(dst, d.src[:n], min(d.left, maxChunk))
	if err != nil {
		return dst, err
	}
	if len(out) == len(dst) {
		return dst, errChunkLength
	}
	d.src = d.src[n:]
	d.left -= len(out) - len(dst)
	return out, nil
}

// nextBlock reads the length of a block. It returns io.EOF at the end of the stream.
func (d *blockDecoder) nextBlock() (err error) {
	if len(d.src) == 0 {
		return io.EOF
	}
	if d.left, err = d.int32(); err != nil || d.left > 0 {
		return err
	}
	if len(d.src) > 0 && string(d.src) != emptyChunk {
		return errTrailing
	}
	d.src = nil
	return io.EOF
}

func (d *blockDecoder) int32() (int, error) {
	if len(d.src) < 4 {
		return 0, errTruncated
	}
	n := binary.BigEndian.Uint32(d.src)
	if n > math.MaxInt32 {
		return 0, errChunkLength
	}
	d.src = d.src[4:]
	return int(n), nil
}

// snappyExpansion is snappy's maximum expansion: 64 bytes for 3.
const snappyExpansion = 64.0 / 3

func snappyChunk(dst, src []byte, limit int) ([]byte, error) {
	n, err := snappy.DecodedLen(src)
	if err != nil {
		return dst, errChunk
	}
	if n > limit || float64(n) > snappyExpansion*float64(len(src)) {
		return dst, fmt.Errorf("a chunk of %d bytes has a decompressed size of %d, with at most %d left", len(src), n, limit)
	}
	dst = grow(dst, n)
	if _, err := snappy.Decode(dst[len(dst):len(dst)+n], src); err != nil {
		return dst, errChunk
	}
	return dst[:len(dst)+n], nil
}

// lz4Guess is the first guess of a chunk's decompressed size, which lz4 does not store: Hadoop's buffer.
const lz4Guess = 256 << 10

func lz4Chunk(dst, src []byte, limit int) ([]byte, error) {
	limit = min(limit, 255*len(src))
	for room := min(limit, lz4Guess); ; room = min(limit, 4*room) {
		dst = grow(dst, room)
		n, err := lz4.UncompressBlock(src, dst[len(dst):len(dst)+room])
		if err == nil {
			return dst[:len(dst)+n], nil
		}
		if room == limit {
			return dst, errChunk
		}
	}
}
