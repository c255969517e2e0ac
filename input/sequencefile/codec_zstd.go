package sequencefile

import (
	"io"

	"sequins/internal/zstdframe"
)

// zstdRoom is the minimum room for what is decompressed at a time, in bytes.
const zstdRoom = 4 << 10

// zstdDecoder is a decoder for zstd. Several frames one after the other count as one.
type zstdDecoder struct {
	src    []byte
	frames zstdframe.Decoder
	plain  io.Reader // what src decompresses to; nil before the first piece
}

func newZstdDecoder() decoder { return new(zstdDecoder) }

func (d *zstdDecoder) Reset(src []byte) { d.src, d.plain = src, nil }

func (d *zstdDecoder) More(dst []byte) (_ []byte, err error) {
	if d.plain == nil {
		if d.plain, err = d.frames.Open(d.src); err != nil {
			return dst, err
		}
	}
	dst = grow(dst, zstdRoom)
	n, err := d.plain.Read(dst[len(dst):cap(dst)])
	if n > 0 {
		return dst[:len(dst)+n], nil // an error is returned by the next call
	}
	return dst, err
}
