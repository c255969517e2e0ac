package zstdframe

import (
	"bytes"
	"io"

	"github.com/klauspost/compress/zstd"
)

const (
	// whole is the largest size, in bytes, that is decompressed at once. Larger data is decompressed as a stream, which is
	// slower and allocates its window.
	whole = 4 << 20
	// MaxWindow is the largest window of zstd's levels (22), in bytes.
	MaxWindow = 128 << 20
)

// Decoder decompresses one buffer after another.
type Decoder struct {
	z     *zstd.Decoder // of what is decompressed at once
	plain []byte
	out   bytes.Reader // of plain
}

// Open returns a reader of what the frames in src decompress to, valid until the next call. src must not change while it is
// read.
func (d *Decoder) Open(src []byte) (io.Reader, error) {
	most, err := Most(src)
	if err != nil {
		return nil, err
	}
	if most > whole {
		return newDecoder(bytes.NewReader(src)) // of its own, so that its window does not stay
	}
	if d.z == nil {
		if d.z, err = newDecoder(nil); err != nil {
			return nil, err
		}
	}
	d.plain, err = d.z.DecodeAll(src, d.plain[:0])
	d.out.Reset(d.plain)
	return &d.out, noEOF(err)
}

// newDecoder returns a decoder that has no goroutines, and so needs no Close.
func newDecoder(r io.Reader) (*zstd.Decoder, error) {
	return zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(1<<62), zstd.WithDecoderMaxWindow(MaxWindow))
}
