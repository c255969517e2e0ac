package unpack

import (
	"bytes"
	"errors"
	"io"

	"github.com/klauspost/compress/zstd"
)

const (
	// whole is the largest size, in bytes, that is decompressed at once. Larger data is decompressed as a stream, which is
	// slower and allocates its window.
	whole = 4 << 20
	// MaxWindow is the largest window of zstd's levels (22), in bytes.
	MaxWindow = 128 << 20
	// MaxBlock is the maximum decompressed size of a block of zstd, in bytes.
	MaxBlock = 128 << 10

	minRoom = 4 << 10 // for what a stream returns at a time, in bytes
)

var (
	errBlock = errors.New("zstd: bad block")
	errSize  = errors.New("zstd: frame size exceeds the size of its blocks")
)

// Zstd decompresses zstd. Several frames one after the other count as one. It bounds their decompressed size by their blocks before:
// otherwise the library would allocate the size and the window that a frame header claims before it has read any content.
type Zstd struct {
	z *zstd.Decoder // of what is decompressed at once
}

// Decode appends what src decompresses to to dst. More than limit bytes are an error.
func (d *Zstd) Decode(dst, src []byte, limit int) (_ []byte, err error) {
	most, err := mostZstd(src)
	if err != nil {
		return dst, err
	}
	if most > whole {
		z, err := newZstd(bytes.NewReader(src)) // of its own, so that its window does not stay
		if err != nil {
			return dst, err
		}
		return readAll(dst, z, limit)
	}
	if d.z == nil {
		if d.z, err = newZstd(nil); err != nil {
			return dst, err
		}
	}
	start := len(dst)
	dst = Grow(dst, min(most, limit)) // the library would grow it by one frame after the other
	if dst, err = d.z.DecodeAll(src, dst); err == nil && len(dst)-start > limit {
		err = TooLong(limit)
	}
	return dst, noEOF(err)
}

// newZstd returns a decoder that has no goroutines, and so needs no Close.
func newZstd(r io.Reader) (*zstd.Decoder, error) {
	return zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(1<<62), zstd.WithDecoderMaxWindow(MaxWindow))
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

// mostZstd returns an upper bound of the decompressed size of the frames in src, in bytes. A compressed block counts as
// MaxBlock. For frames that end too early the error is io.ErrUnexpectedEOF.
func mostZstd(src []byte) (most int, err error) {
	for len(src) > 0 {
		var h zstd.Header
		if err := h.Decode(src); err != nil {
			return 0, noEOF(err)
		}
		src = src[h.HeaderSize:]
		if h.Skippable {
			if int64(h.SkippableSize) > int64(len(src)) {
				return 0, io.ErrUnexpectedEOF
			}
			src = src[h.SkippableSize:]
			continue
		}
		var size int
		if size, src, err = blocks(src); err != nil {
			return 0, err
		}
		if h.HasFCS && h.FrameContentSize > uint64(size) {
			return 0, errSize
		}
		if h.HasCheckSum {
			if len(src) < 4 {
				return 0, io.ErrUnexpectedEOF
			}
			src = src[4:]
		}
		most += size
	}
	return most, nil
}

// blocks returns an upper bound of the decompressed size of a frame's blocks, and the rest of b after the frame.
func blocks(src []byte) (most int, rest []byte, err error) {
	for last := false; !last; {
		if len(src) < 3 {
			return 0, nil, io.ErrUnexpectedEOF
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
			holds = MaxBlock
		default:
			return 0, nil, errBlock
		}
		if size > len(src) {
			return 0, nil, io.ErrUnexpectedEOF
		}
		if holds > MaxBlock {
			return 0, nil, errBlock
		}
		src = src[size:]
		most += holds
	}
	return most, src, nil
}

// noEOF returns io.ErrUnexpectedEOF for an end of input within a frame, and other errors unchanged.
func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
