package unpack

import (
	"bytes"
	"errors"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// MaxWindow is the largest window of zstd's levels (22), in bytes.
const MaxWindow = 128 << 20

const (
	zstdRoom = 32 << 10 // for what is decompressed first, in bytes; a buffer that is used again has more
	minRoom  = 4 << 10  // for what a stream returns at a time, in bytes
)

// zstdDecoder returns a decoder that allocates nothing for the result: it decodes into the capacity of its buffer, whatever size and window a frame claims.
var zstdDecoder = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderMaxWindow(MaxWindow))
})

// Zstd is a [Decoder] of zstd frames, several of which count as one. What dst has no room for is decompressed as a stream,
// which is slower and allocates the window that a frame claims, up to MaxWindow.
func Zstd(dst, src []byte, limit int) ([]byte, error) {
	d, err := zstdDecoder()
	if err != nil {
		return dst, err
	}
	dst = Grow(dst, min(limit, zstdRoom))
	out, err := d.DecodeAll(src, dst)
	switch {
	case err == nil && len(out)-len(dst) <= limit:
		return out, nil
	case cap(dst)-len(dst) < limit: // more room may be all that it needs
	case err == nil || errors.Is(err, zstd.ErrDecoderSizeExceeded):
		return dst, TooLong(limit)
	case err == io.EOF:
		return dst, io.ErrUnexpectedEOF
	default:
		return dst, err
	}
	// Without concurrency a decoder has no goroutines, and so needs no Close.
	stream, err := zstd.NewReader(bytes.NewReader(src), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(1<<62), zstd.WithDecoderMaxWindow(MaxWindow))
	if err != nil {
		return dst, err
	}
	return readAll(dst, stream, limit)
}

// readAll appends all of r to dst. More than limit bytes are an error.
func readAll(dst []byte, r io.Reader, limit int) ([]byte, error) {
	for start := len(dst); len(dst)-start <= limit; {
		dst = Grow(dst, minRoom)
		n, err := r.Read(dst[len(dst):cap(dst)])
		dst = dst[:len(dst)+n]
		if err == io.EOF {
			return dst, nil
		}
		if err != nil {
			return dst, err
		}
	}
	return dst, TooLong(limit)
}
