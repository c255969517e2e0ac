// Package zstdframe bounds what zstd frames decompress to by what is really in them, for readers of hostile files: the
// size that a frame claims and its window would otherwise be allocated before anything is known of its contents.
package zstdframe

import (
	"errors"
	"io"

	"github.com/klauspost/compress/zstd"
)

var (
	// ErrTruncated is returned for frames that end too early.
	ErrTruncated = errors.New("zstd: it ends too early")
	// ErrBlock is returned for a frame with a block that no frame can have.
	ErrBlock = errors.New("zstd: bad block")
	// ErrSize is returned for a frame that claims to hold more than its blocks can.
	ErrSize = errors.New("zstd: a frame claims to hold more than its blocks can")
)

// MaxBlock is the most that a block of a frame holds, in bytes.
const MaxBlock = 128 << 10

// Most walks over the frames in src, and returns the most that they can hold, in bytes. A compressed block counts as the
// most that a block can have.
func Most(src []byte) (most int, err error) {
	for len(src) > 0 {
		var h zstd.Header
		if err := h.Decode(src); err != nil {
			return 0, noEOF(err)
		}
		src = src[h.HeaderSize:]
		if h.Skippable {
			if int64(h.SkippableSize) > int64(len(src)) {
				return 0, ErrTruncated
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
				return 0, ErrTruncated
			}
			src = src[4:]
		}
		most += size
	}
	return most, nil
}

// blocks walks over the blocks of a frame, and returns the most that they can hold, and what follows them.
func blocks(src []byte) (most int, rest []byte, err error) {
	for last := false; !last; {
		if len(src) < 3 {
			return 0, nil, ErrTruncated
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
			return 0, nil, ErrTruncated
		}
		if holds > MaxBlock {
			return 0, nil, ErrBlock
		}
		src = src[size:]
		most += holds
	}
	return most, src, nil
}

// noEOF makes the end of the input within a header what it is here: damage.
func noEOF(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return ErrTruncated
	}
	return err
}
