package sparkey

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/snappy"

	"sequins/internal/zstdframe"
)

var errBlockTooLong = errors.New("decompressed size exceeds the compression block size")

// maxCompressed returns the maximum compressed size of n bytes: snappy's bound, with a constant for zstd's headers.
func maxCompressed(n int) int { return 64 + n + n/6 }

// decoder decompresses one block after another.
type decoder struct {
	compression Compression
	limit       int // bytes of a decompressed block
	frames      zstdframe.Decoder
	limited     io.LimitedReader // of frames
	plain       bytes.Buffer
}

// decode returns the content of a block, valid until the next call.
func (d *decoder) decode(src []byte) ([]byte, error) {
	if d.compression == Snappy {
		return d.decodeSnappy(src)
	}
	frames, err := d.frames.Open(src)
	if err != nil {
		return nil, err
	}
	d.limited = io.LimitedReader{R: frames, N: int64(d.limit) + 1}
	d.plain.Reset()
	_, err = d.plain.ReadFrom(&d.limited)
	if err == nil && d.plain.Len() > d.limit {
		err = errBlockTooLong
	}
	return d.plain.Bytes(), err
}

func (d *decoder) decodeSnappy(src []byte) ([]byte, error) {
	n, err := snappy.DecodedLen(src)
	if err != nil {
		return nil, err
	}
	if n > d.limit {
		return nil, errBlockTooLong
	}
	if n > 64*len(src) { // three bytes give at most 64: checked before allocating
		return nil, fmt.Errorf("%d bytes cannot decompress to %d", len(src), n)
	}
	d.plain.Reset()
	d.plain.Grow(n)
	return snappy.Decode(d.plain.AvailableBuffer()[:n], src)
}
