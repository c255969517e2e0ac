package sequencefile

import (
	"bytes"
	"errors"
	"io"

	"github.com/klauspost/compress/zstd"
)

const (
	// zstdWhole is how much is decompressed at once, in bytes; what may be larger is decompressed as a stream, slower.
	zstdWhole = 4 << 20
	// zstdWindow is the largest window of zstd's levels (22), in bytes. Only a stream allocates its window.
	zstdWindow = 128 << 20
	// zstdRoom is the least room that a stream is given to decompress into, in bytes.
	zstdRoom = 4 << 10
	// zstdBlock is the most that a block of a frame holds, in bytes.
	zstdBlock = 128 << 10
)

var (
	errZstdBlock = errors.New("zstd: bad block")
	errZstdSize  = errors.New("zstd: a frame claims to hold more than its blocks can")
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

func (d *zstdDecoder) reset(src []byte) {
	if src == nil && d.hasWindow {
		d.z, d.hasWindow = nil, false
	}
	d.reader.Reset(nil)
	d.src, d.state = src, zstdStart
}

func (d *zstdDecoder) more(dst []byte) ([]byte, error) {
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
	most, err := zstdBound(d.src)
	if err != nil {
		return dst, err
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

// zstdBound walks over the frames in src, and returns the most that they can hold, in bytes. Neither the size that a
// frame claims nor its window is to be believed before that: they would be allocated at once.
func zstdBound(src []byte) (most int, err error) {
	for len(src) > 0 {
		var h zstd.Header
		if err := h.Decode(src); err != nil {
			return 0, noEOF(err)
		}
		src = src[h.HeaderSize:]
		if h.Skippable {
			if int64(h.SkippableSize) > int64(len(src)) {
				return 0, errTruncated
			}
			src = src[h.SkippableSize:]
			continue
		}
		var size int
		if size, src, err = zstdBlocks(src); err != nil {
			return 0, err
		}
		if h.HasFCS && h.FrameContentSize > uint64(size) {
			return 0, errZstdSize
		}
		if h.HasCheckSum {
			if len(src) < 4 {
				return 0, errTruncated
			}
			src = src[4:]
		}
		most += size
	}
	return most, nil
}

// zstdBlocks walks over the blocks of a frame, and returns the most that they can hold, and what follows them.
func zstdBlocks(src []byte) (most int, rest []byte, err error) {
	for last := false; !last; {
		if len(src) < 3 {
			return 0, nil, errTruncated
		}
		head := int(src[0]) | int(src[1])<<8 | int(src[2])<<16
		last = head&1 != 0
		src = src[3:]
		size, holds := head>>3, head>>3
		switch head >> 1 & 3 {
		case 0: // raw
		case 1: // one byte, repeated
			size = 1
		case 2: // compressed
			holds = zstdBlock
		default:
			return 0, nil, errZstdBlock
		}
		if size > len(src) {
			return 0, nil, errTruncated
		}
		if holds > zstdBlock {
			return 0, nil, errZstdBlock
		}
		src = src[size:]
		most += holds
	}
	return most, src, nil
}

// startStream begins to decompress what may be too large to do at once.
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

// noEOF makes the end of the input within a stream what it is here: damage.
func noEOF(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return errTruncated
	}
	return err
}
