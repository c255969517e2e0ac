// Package inflate decompresses deflate (RFC 1951), the most common codec of SequenceFiles, and one of Avro. It is not a library's because
// with all input in memory it takes 0.5 to 0.6 of the processor time of github.com/klauspost/compress/flate, by reading
// whole SequenceFiles with each.
package inflate

import (
	"encoding/binary"
	"errors"
	"io"

	"sequins/internal/unpack"
)

const (
	piece        = 32 << 10 // the room for what is decompressed next, in bytes
	longestMatch = 258      // the longest match
	slack        = 8        // matches are copied in words, and so beyond their ends
)

var (
	errBlock  = errors.New("deflate: unknown block type")
	errStored = errors.New("deflate: bad length of a stored block")
	errCodes  = errors.New("deflate: bad codes of a block")
	errData   = errors.New("deflate: bad data in a block")
)

// Decoder decompresses one deflate stream after the other.
type Decoder struct {
	src  []byte
	pos  int    // of the next byte that is not in bits
	bits uint64 // the next bits, from the lowest on
	n    int    // number of bits; negative if more were used than exist

	dynamic codeTables
	sizes   [maxLengths + maxDistances]uint8 // of the codes in dynamic
}

// Decode appends what the stream at the beginning of src decompresses to to dst, and returns what follows the stream. More than limit
// bytes are an error.
func (z *Decoder) Decode(dst, src []byte, limit int) (_, rest []byte, err error) {
	z.src, z.pos, z.bits, z.n = src, 0, 0, 0
	defer func() { z.src = nil }()
	start := len(dst)
	for final := false; !final; {
		final = z.take(1) != 0
		kind := z.take(2)
		if z.n < 0 {
			return dst, nil, io.ErrUnexpectedEOF
		}
		switch kind {
		case 0:
			dst, err = z.stored(dst)
		case 1:
			dst, err = z.decode(dst, start, limit, fixedCodes)
		case 2:
			if err = z.readCodes(); err == nil {
				dst, err = z.decode(dst, start, limit, &z.dynamic)
			}
		default:
			err = errBlock
		}
		if err == nil && len(dst)-start > limit {
			err = unpack.TooLong(limit)
		}
		if err != nil {
			return dst, nil, err
		}
	}
	z.align()
	return dst, src[z.pos:], nil
}

// stored copies a stored block, which begins at the next whole byte, with its length, twice.
func (z *Decoder) stored(dst []byte) ([]byte, error) {
	z.align()
	if len(z.src)-z.pos < 4 {
		return dst, io.ErrUnexpectedEOF
	}
	head := binary.LittleEndian.Uint32(z.src[z.pos:])
	if uint16(head) != ^uint16(head>>16) {
		return dst, errStored
	}
	z.pos += 4
	n := int(uint16(head))
	if n > len(z.src)-z.pos {
		return dst, io.ErrUnexpectedEOF
	}
	dst = append(unpack.Grow(dst, n), z.src[z.pos:z.pos+n]...)
	z.pos += n
	return dst, nil
}

// align drops the rest of the current byte, and returns whole bytes that were read ahead.
func (z *Decoder) align() {
	z.pos -= z.n >> 3
	z.bits, z.n = 0, 0
}

// take returns the next k bits, up to 16. Beyond the end it returns zeros, and z.n is negative.
func (z *Decoder) take(k int) uint32 {
	if z.n < k {
		z.refill()
	}
	v := uint32(z.bits) & (1<<k - 1)
	z.bits >>= k
	z.n -= k
	return v
}

// refill makes at least 56 bits available, or all that are left.
func (z *Decoder) refill() {
	if z.n < 0 {
		return
	}
	if len(z.src)-z.pos >= 8 {
		z.bits |= binary.LittleEndian.Uint64(z.src[z.pos:]) << z.n
		z.pos += (63 - z.n) >> 3
		z.n |= 56
		return
	}
	for z.n <= 56 && z.pos < len(z.src) {
		z.bits |= uint64(z.src[z.pos]) << z.n
		z.pos++
		z.n += 8
	}
}

// decode decompresses a block with the given codes. The stream began at start.
func (z *Decoder) decode(dst []byte, start, limit int, codes *codeTables) ([]byte, error) {
	src, pos, bits, n := z.src, z.pos, z.bits, z.n
	end, buf := len(dst), dst[:cap(dst)]
	for {
		if end > len(buf)-longestMatch-slack {
			switch {
			case n < 0:
				return dst, io.ErrUnexpectedEOF
			case end-start > limit:
				return dst, unpack.TooLong(limit)
			}
			buf = unpack.Grow(buf[:end], piece)
			buf = buf[:cap(buf)]
		}
		if n < 48 { // maximum for a length and a distance
			switch {
			case len(src)-pos >= 8:
				bits |= binary.LittleEndian.Uint64(src[pos:]) << (n & 63)
				pos += (63 - n) >> 3
				n |= 56
			case n < 0:
				return dst, io.ErrUnexpectedEOF
			default:
				for ; n <= 56 && pos < len(src); n += 8 {
					bits |= uint64(src[pos]) << (n & 63)
					pos++
				}
			}
		}
		code := codes.lengths[bits&(1<<lengthBits-1)]
		if code&codeLink != 0 {
			code = codes.lengths[uint64(code>>codeValue)+bits>>lengthBits&(1<<(codeMax-lengthBits)-1)]
		}
		bits >>= code & codeSize
		n -= int(code & codeSize)
		if code&codeLiteral != 0 {
			buf[end] = byte(code >> codeValue)
			end++
			continue
		}
		if code&codeBase == 0 {
			z.pos, z.bits, z.n = pos, bits, n
			if code&codeEnd == 0 {
				return dst, z.bad(n, errData)
			}
			return buf[:end], z.bad(n, nil)
		}
		extra := code >> codeExtra & 15
		length := int(code>>codeValue) + int(bits&(1<<extra-1))
		bits >>= extra
		n -= int(extra)

		code = codes.distances[bits&(1<<distanceBits-1)]
		if code&codeLink != 0 {
			code = codes.distances[uint64(code>>codeValue)+bits>>distanceBits&(1<<(codeMax-distanceBits)-1)]
		}
		bits >>= code & codeSize
		extra = code >> codeExtra & 15
		distance := int(code>>codeValue) + int(bits&(1<<extra-1))
		bits >>= extra
		n -= int(code&codeSize + extra)
		if code&codeBase == 0 || distance > end-start {
			return dst, z.bad(n, errData)
		}
		copyMatch(buf, end, distance, length)
		end += length
	}
}

// bad returns err, or io.ErrUnexpectedEOF if more bits were used than exist (n < 0).
func (z *Decoder) bad(n int, err error) error {
	if n < 0 {
		return io.ErrUnexpectedEOF
	}
	return err
}

// copyMatch copies length bytes from distance back to end. It may write slack-1 bytes more.
func copyMatch(buf []byte, end, distance, length int) {
	from := end - distance
	if distance >= 8 {
		for i := 0; i < length; i += 8 {
			binary.LittleEndian.PutUint64(buf[end+i:], binary.LittleEndian.Uint64(buf[from+i:]))
		}
		return
	}
	// What is copied is being written: the bytes from there to the end, over and over.
	pattern := binary.LittleEndian.Uint64(buf[from:]) & (1<<(8*distance) - 1)
	for n := distance; n < 8; n *= 2 {
		pattern |= pattern << (8 * n)
	}
	step := 8 - 8%distance
	for i := 0; i < length; i += step {
		binary.LittleEndian.PutUint64(buf[end+i:], pattern)
	}
}
