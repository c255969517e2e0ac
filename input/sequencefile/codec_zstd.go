package sequencefile

import (
	"bytes"
	"io"

	"github.com/klauspost/compress/zstd"

	"sequins/internal/zstdframe"
)

const (
	// zstdWhole is the largest size, in bytes, that is decompressed at once; larger data is decompressed as a stream,
	// which is slower.
	zstdWhole = 4 << 20
	// zstdWindow is the largest window of zstd's levels (22), in bytes. Only a stream allocates its window.
	zstdWindow = 128 << 20
	// zstdRoom is the minimum size of a stream's output buffer, in bytes.
	zstdRoom = 4 << 10
)

// zstdDecoder is a decoder for zstd. Several frames one after the other count as one.
type zstdDecoder struct {
	src       []byte
	z         *zstd.Decoder
	reader    bytes.Reader // of src, if it is a stream
	state     zstdState
	hasWindow bool // z has allocated one
}

type zstdState uint8

const (
	zstdStart zstdState = iota
	zstdStream
	zstdDone
)

func newZstdDecoder() decoder { return new(zstdDecoder) }

func (d *zstdDecoder) Reset(src []byte) {
	if src == nil && d.hasWindow {
		d.z, d.hasWindow = nil, false
	}
	d.reader.Reset(nil)
	d.src, d.state = src, zstdStart
}

func (d *zstdDecoder) More(dst []byte) ([]byte, error) {
	switch {
	case d.state == zstdStream:
		return d.moreStream(dst)
	case d.state == zstdDone || len(d.src) == 0:
		return dst, io.EOF
	}
	if d.z == nil {
		// With a concurrency of 1 there are no goroutines, so that a decoder needs no Close.
		var err error
		d.z, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(zstdWindow))
		if err != nil {
			return dst, err
		}
	}
	most, err := zstdframe.Most(d.src)
	if err != nil {
		return dst, noEOF(err)
	}
	if most > zstdWhole {
		return d.startStream(dst)
	}
	d.state = zstdDone
	out, err := d.z.DecodeAll(d.src, dst)
	if err != nil {
		return dst, noEOF(err)
	}
	if len(out) == len(dst) {
		return dst, io.EOF
	}
	return out, nil
}

// startStream starts to decompress data that may be too large to decompress at once.
func (d *zstdDecoder) startStream(dst []byte) ([]byte, error) {
	d.reader.Reset(d.src)
	if err := d.z.Reset(&d.reader); err != nil {
		return dst, err
	}
	d.state, d.hasWindow = zstdStream, true
	return d.moreStream(dst)
}

func (d *zstdDecoder) moreStream(dst []byte) ([]byte, error) {
	dst = grow(dst, zstdRoom)
	n, err := d.z.Read(dst[len(dst):cap(dst)])
	if n > 0 {
		return dst[:len(dst)+n], nil // an error is returned by the next call
	}
	if err == io.EOF {
		return dst, io.EOF
	}
	return dst, noEOF(err)
}

// noEOF returns errTruncated for an end of input within a stream, and other errors unchanged.
func noEOF(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF || err == zstdframe.ErrTruncated {
		return errTruncated
	}
	return err
}
