package sequencefile

import (
	"bytes"
	"errors"
	"io"
	"slices"

	"github.com/klauspost/compress/zstd"
)

const (
	// zstdWhole is how much is decompressed at once, in bytes; what is larger is decompressed as a stream, which is slower.
	zstdWhole = 4 << 20
	// zstdWindow is the largest window of zstd's levels (22), in bytes. Only a stream allocates its window.
	zstdWindow = 128 << 20
)

// zstdDecoder is a decoder for zstd. Several frames one after the other count as one.
type zstdDecoder struct {
	src       []byte
	whole     *zstd.Decoder // bounded by zstdWhole
	stream    *zstd.Decoder // bounded by zstdWindow; nil until it is needed
	reader    bytes.Reader  // of src, for stream
	streaming bool
	done      bool
}

func newZstdDecoder() decoder { return new(zstdDecoder) }

func (d *zstdDecoder) reset(src []byte) {
	if src == nil {
		d.stream = nil // with its window, which may be large
	}
	d.reader.Reset(nil)
	d.src, d.streaming, d.done = src, false, len(src) == 0
}

func (d *zstdDecoder) more(dst []byte) ([]byte, error) {
	switch {
	case d.done:
		return dst, io.EOF
	case d.streaming:
		return d.moreStream(dst)
	}
	if err := openZstd(&d.whole, zstd.WithDecoderMaxMemory(zstdWhole)); err != nil {
		return dst, err
	}
	out, err := d.whole.DecodeAll(d.src, dst)
	switch {
	case errors.Is(err, zstd.ErrDecoderSizeExceeded), errors.Is(err, zstd.ErrWindowSizeExceeded):
		return d.startStream(dst)
	case err != nil:
		return dst, noEOF(err)
	}
	d.done = true
	if len(out) == len(dst) {
		err = io.EOF
	}
	return out, err
}

// openZstd makes a decoder unless there is one. With a concurrency of 1 it has no goroutines, and needs no Close.
func openZstd(z **zstd.Decoder, limit zstd.DOption) (err error) {
	if *z == nil {
		*z, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), limit)
	}
	return err
}

// startStream begins to decompress what is too large to do at once.
func (d *zstdDecoder) startStream(dst []byte) ([]byte, error) {
	if err := openZstd(&d.stream, zstd.WithDecoderMaxWindow(zstdWindow)); err != nil {
		return dst, err
	}
	d.reader.Reset(d.src)
	if err := d.stream.Reset(&d.reader); err != nil {
		return dst, err
	}
	d.streaming = true
	return d.moreStream(dst)
}

func (d *zstdDecoder) moreStream(dst []byte) ([]byte, error) {
	dst = slices.Grow(dst, minRead)
	n, err := d.stream.Read(dst[len(dst):cap(dst)])
	if n > 0 {
		return dst[:len(dst)+n], nil // an error stays until the next call
	}
	if err == io.EOF {
		return dst, io.EOF
	}
	return dst, noEOF(err)
}

// zstdEncoder is an encoder for zstd, one frame each time.
type zstdEncoder struct{ z *zstd.Encoder }

func newZstdEncoder() (encoder, error) {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithZeroFrames(true))
	return zstdEncoder{z}, err
}

func (e zstdEncoder) encode(dst, src []byte) ([]byte, error) {
	return e.z.EncodeAll(src, dst), nil
}
