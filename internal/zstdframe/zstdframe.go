// Package zstdframe decompresses zstd frames of untrusted files. It bounds their decompressed size by their blocks before: otherwise
// a decoder would allocate the size and the window that a frame header claims before it has read any content.
package zstdframe

import (
	"errors"
	"io"

	"github.com/klauspost/compress/zstd"
)

var (
	// ErrBlock is returned for a frame with an invalid block.
	ErrBlock = errors.New("zstd: bad block")
	// ErrSize is returned for a frame whose claimed size exceeds what its blocks can hold.
	ErrSize = errors.New("zstd: frame size exceeds the size of its blocks")
)

// MaxBlock is the maximum decompressed size of a block, in bytes.
const MaxBlock = 128 << 10

// Most returns an upper bound of the decompressed size of the frames in src, in bytes. A compressed block counts as
// MaxBlock. For frames that end too early the error is io.ErrUnexpectedEOF.
func Most(src []byte) (most int, err error) {
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
			return 0, ErrSize
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
			return 0, nil, ErrBlock
		}
		if size > len(src) {
			return 0, nil, io.ErrUnexpectedEOF
		}
		if holds > MaxBlock {
			return 0, nil, ErrBlock
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
