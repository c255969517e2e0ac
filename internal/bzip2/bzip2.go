// Package bzip2 decompresses bzip2, also the randomised blocks that Hadoop's bzip2 in Java writes of data that repeats, such as the
// lengths of values that all have 200 bytes. It is not a library's because the standard library's refuses those, and cannot be reset:
// it allocates 3.6 MB for each record, and takes 53 times as long for a file that is compressed by record.
package bzip2

import (
	"errors"
	"io"

	"sequins/internal/unpack"
)

// A bzip2 stream is read bit by bit, the highest bit of a byte first:
//
//	"BZh" and a digit    1 … 9: blocks hold up to that many times 100,000 bytes
//	blocks               each from a 48-bit magic on
//	48-bit end magic     and a 32-bit checksum over those of the blocks; then bits up to the end of the byte
//
// Several streams one after the other count as one. BZip2Codec writes one for each value or column.

const (
	blockMagic = 0x314159265359
	endMagic   = 0x177245385090
	blockUnit  = 100_000
)

var (
	errMagic    = errors.New("bzip2: bad magic")
	errChecksum = errors.New("bzip2: bad checksum")
	errTables   = errors.New("bzip2: bad tables of a block")
	errData     = errors.New("bzip2: bad data in a block")
)

// Decoder decompresses one buffer after another.
type Decoder struct {
	in    bitReader
	block block
}

// Decode appends what src decompresses to to dst. More than limit bytes are an error. It allocates at most a constant factor of the
// decompressed size.
func (d *Decoder) Decode(dst, src []byte, limit int) (_ []byte, err error) {
	d.in = bitReader{src: src}
	defer func() { d.in = bitReader{} }() // releases src
	end := len(dst) + limit
	for !d.in.empty() {
		if dst, err = d.stream(dst, end); err != nil {
			return dst, err
		}
		if len(dst) > end {
			return dst, unpack.TooLong(limit)
		}
	}
	return dst, nil
}

// stream appends a stream, or stops behind end.
func (d *Decoder) stream(dst []byte, end int) ([]byte, error) {
	magic := d.in.take(24)
	level := int(d.in.take(8)) - '0'
	if d.in.short() {
		return dst, io.ErrUnexpectedEOF
	}
	if magic != 'B'<<16|'Z'<<8|'h' || level < 1 || level > 9 {
		return dst, errMagic
	}
	streamCRC := uint32(0)
	for len(dst) <= end {
		magic := uint64(d.in.take(24))<<24 | uint64(d.in.take(24))
		crc := d.in.take(16)<<16 | d.in.take(16)
		if d.in.short() {
			return dst, io.ErrUnexpectedEOF
		}
		switch magic {
		case endMagic:
			d.in.n &^= 7 // what is left of the byte
			if crc != streamCRC {
				return dst, errChecksum
			}
			return dst, nil
		case blockMagic:
			streamCRC = (streamCRC<<1 | streamCRC>>31) ^ crc
			first, err := d.block.read(&d.in, level*blockUnit)
			if err != nil {
				return dst, err
			}
			begin := len(dst)
			dst = d.block.output(dst, first, end)
			if len(dst) <= end && ^updateCRC(^uint32(0), dst[begin:]) != crc {
				return dst, errChecksum
			}
		default:
			return dst, errMagic
		}
	}
	return dst, nil
}

// crcTable is the CRC-32 of Ethernet with the highest bit first, for each byte.
var crcTable = func() (t [256]uint32) {
	for i := range t {
		c := uint32(i) << 24
		for range 8 {
			if c>>31 != 0 {
				c = c<<1 ^ 0x04c11db7
			} else {
				c <<= 1
			}
		}
		t[i] = c
	}
	return t
}()

func updateCRC(crc uint32, b []byte) uint32 {
	for _, c := range b {
		crc = crc<<8 ^ crcTable[byte(crc>>24)^c]
	}
	return crc
}
