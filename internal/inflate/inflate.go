// Package inflate decompresses deflate (RFC 1951), the most common codec of SequenceFiles. It is not a library's because
// with all input in memory it takes 0.5 to 0.6 of the processor time of github.com/klauspost/compress/flate, by reading
// whole SequenceFiles with each.
package inflate

import (
	"encoding/binary"
	"errors"
	"io"
)

const (
	window       = 32 << 10 // how far back a match can lie, in bytes
	piece        = 64 << 10 // the approximate number of bytes that are decompressed at a time
	longestMatch = 258      // the longest match
	slack        = 8        // matches are copied in words, and so beyond their ends

	limit = window + piece
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

	inBlock bool // there is more of the current block
	final   bool // it is the last one
	stored  int  // remaining bytes of a stored block
	codes   *codeTables

	given int // buf[:given] was returned and is kept for matches
	end   int // buf[given:end] is new
	buf   [limit + longestMatch + slack]byte

	dynamic codeTables
	sizes   [maxLengths + maxDistances]uint8 // of the codes in dynamic
}

// Reset starts on a stream at the beginning of src.
func (z *Decoder) Reset(src []byte) {
	z.src, z.pos, z.bits, z.n = src, 0, 0, 0
	z.inBlock, z.final, z.codes = false, false, nil
	z.given, z.end = 0, 0
}

// Rest is what follows the stream, when Next has returned io.EOF.
func (z *Decoder) Rest() []byte {
	z.align()
	return z.src[z.pos:]
}

// Next returns the next piece, valid until the next call, and io.EOF after the last.
func (z *Decoder) Next() ([]byte, error) {
	if z.end > window {
		z.end = copy(z.buf[:], z.buf[z.end-window:z.end])
		z.given = z.end
	}
	for z.end < limit && (z.inBlock || !z.final) {
		var err error
		switch {
		case !z.inBlock:
			err = z.startBlock()
		case z.codes == nil:
			err = z.copyStored()
		default:
			err = z.decode()
		}
		if err != nil {
			return nil, err
		}
	}
	if z.end == z.given {
		return nil, io.EOF
	}
	piece := z.buf[z.given:z.end]
	z.given = z.end
	return piece, nil
}

// startBlock reads the head of a block.
func (z *Decoder) startBlock() error {
	z.final = z.take(1) != 0
	kind := z.take(2)
	if z.n < 0 {
		return io.ErrUnexpectedEOF
	}
	z.inBlock = true
	switch kind {
	case 0:
		return z.startStored()
	case 1:
		z.codes = fixedCodes
		return nil
	case 2:
		z.codes = &z.dynamic
		return z.readCodes()
	}
	return errBlock
}

// startStored reads the head of a stored block: its length, twice, from the next whole byte on.
func (z *Decoder) startStored() error {
	z.align()
	if len(z.src)-z.pos < 4 {
		return io.ErrUnexpectedEOF
	}
	head := binary.LittleEndian.Uint32(z.src[z.pos:])
	if uint16(head) != ^uint16(head>>16) {
		return errStored
	}
	z.pos += 4
	z.codes, z.stored = nil, int(uint16(head))
	return nil
}

func (z *Decoder) copyStored() error {
	n := min(z.stored, limit-z.end)
	if n > len(z.src)-z.pos {
		return io.ErrUnexpectedEOF
	}
	copy(z.buf[z.end:], z.src[z.pos:z.pos+n])
	z.pos += n
	z.end += n
	z.stored -= n
	z.inBlock = z.stored > 0
	return nil
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

// decode decompresses up to the end of the block, or until buf is full.
func (z *Decoder) decode() error {
	src, pos, bits, n := z.src, z.pos, z.bits, z.n
	end, buf, codes := z.end, &z.buf, z.codes
	for end < limit {
		if n < 48 { // maximum for a length and a distance
			switch {
			case len(src)-pos >= 8:
				bits |= binary.LittleEndian.Uint64(src[pos:]) << (n & 63)
				pos += (63 - n) >> 3
				n |= 56
			case n < 0:
				return io.ErrUnexpectedEOF
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
			z.pos, z.bits, z.n, z.end = pos, bits, n, end
			return z.endBlock(code)
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
		if code&codeBase == 0 || distance > end {
			return z.bad(n, errData)
		}
		copyMatch(buf, end, distance, length)
		end += length
	}
	z.pos, z.bits, z.n, z.end = pos, bits, n, end
	return z.bad(n, nil)
}

// endBlock ends the block if the code is the end-of-block code.
func (z *Decoder) endBlock(code uint32) error {
	z.inBlock = false
	if code&codeEnd == 0 {
		return z.bad(z.n, errData)
	}
	return z.bad(z.n, nil)
}

// bad returns err, or io.ErrUnexpectedEOF if more bits were used than exist (n < 0).
func (z *Decoder) bad(n int, err error) error {
	if n < 0 {
		return io.ErrUnexpectedEOF
	}
	return err
}

// copyMatch copies length bytes from distance back to end. It may write slack-1 bytes more.
func copyMatch(buf *[limit + longestMatch + slack]byte, end, distance, length int) {
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
