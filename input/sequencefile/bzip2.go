package sequencefile

import (
	"errors"
	"io"

	"github.com/dsnet/compress/bzip2"
)

// A bzip2 stream is read bit by bit, the highest bit of a byte first:
//
//	"BZh" and a digit    1 … 9: blocks hold up to that many times 100,000 bytes
//	blocks               each from a 48-bit magic on
//	48-bit end magic     and a 32-bit checksum over those of the blocks; then bits up to the end of the byte
//
// Several streams one after the other count as one. BZip2Codec writes one for each value or column. The decoder is this
// package's own since the standard library's cannot be reset: it would allocate 3.6 MB for each record.

const (
	bzip2BlockMagic = 0x314159265359
	bzip2EndMagic   = 0x177245385090
	bzip2BlockUnit  = 100_000
	// bzip2Piece is the least room for what is decompressed at a time.
	bzip2Piece = 64 << 10
)

var (
	errBzip2Magic    = errors.New("bzip2: bad magic")
	errBzip2Checksum = errors.New("bzip2: bad checksum")
	errBzip2Tables   = errors.New("bzip2: bad tables of a block")
	errBzip2Data     = errors.New("bzip2: bad data in a block")
)

// bzip2Decoder is a decoder for bzip2.
type bzip2Decoder struct {
	in        bitReader
	open      bool // within a stream
	blockSize int  // of this stream, in bytes
	streamCRC uint32
	blockCRC  uint32 // as stored; what has been counted so far is in out
	block     bzip2Block
	out       bzip2Output
}

func newBzip2Decoder() decoder { return new(bzip2Decoder) }

func (d *bzip2Decoder) reset(src []byte) {
	d.in = bitReader{src: src}
	d.open = false
	d.out = bzip2Output{}
}

func (d *bzip2Decoder) more(dst []byte) ([]byte, error) {
	for before := len(dst); ; {
		if d.out.pending() {
			var err error
			if dst, err = d.emit(dst); err != nil || len(dst) > before {
				return dst, err
			}
			continue
		}
		if !d.open {
			if d.in.empty() {
				return dst, io.EOF
			}
			if err := d.startStream(); err != nil {
				return dst, err
			}
		}
		if err := d.nextBlock(); err != nil {
			return dst, err
		}
	}
}

// emit appends a piece of the current block, and checks the block's checksum at its end.
func (d *bzip2Decoder) emit(dst []byte) ([]byte, error) {
	dst = grow(dst, bzip2Piece)
	n := d.out.read(d.block.tt, dst[len(dst):cap(dst)])
	dst = dst[:len(dst)+n]
	if !d.out.pending() && ^d.out.crc != d.blockCRC {
		return dst, errBzip2Checksum
	}
	return dst, nil
}

func (d *bzip2Decoder) startStream() error {
	magic := d.in.take(24)
	level := int(d.in.take(8)) - '0'
	if d.in.short() {
		return errTruncated
	}
	if magic != 'B'<<16|'Z'<<8|'h' || level < 1 || level > 9 {
		return errBzip2Magic
	}
	d.open, d.blockSize, d.streamCRC = true, level*bzip2BlockUnit, 0
	return nil
}

// nextBlock reads the next block of the stream, or its end.
func (d *bzip2Decoder) nextBlock() error {
	magic := uint64(d.in.take(24))<<24 | uint64(d.in.take(24))
	crc := d.in.take(16)<<16 | d.in.take(16)
	if d.in.short() {
		return errTruncated
	}
	switch magic {
	case bzip2EndMagic:
		d.open = false
		d.in.align()
		if crc != d.streamCRC {
			return errBzip2Checksum
		}
		return nil
	case bzip2BlockMagic:
		d.blockCRC = crc
		d.streamCRC = (d.streamCRC<<1 | d.streamCRC>>31) ^ crc
		first, err := d.block.read(&d.in, d.blockSize)
		if err != nil {
			return err
		}
		d.out = bzip2Output{next: first, left: len(d.block.tt), random: d.block.random, crc: ^uint32(0)}
		return nil
	}
	return errBzip2Magic
}

// bzip2Output undoes the first stage of bzip2 on the bytes of a block: behind four equal bytes stands a count of more.
type bzip2Output struct {
	next uint32 // entry in the block's table, see bzip2Block
	left int    // bytes of the block that have not been looked at
	last byte
	same int // times that last has come in a row, up to 4
	run  int // times that last is still to be given out
	crc  uint32

	random bool // the block is randomised
	mask   bzip2Mask
}

func (o *bzip2Output) pending() bool { return o.left > 0 || o.run > 0 }

// read fills dst, or less of it at the end of the block, and returns the number of bytes.
func (o *bzip2Output) read(tt []uint32, dst []byte) int {
	n := 0
	for n < len(dst) {
		if o.run > 0 {
			k := min(o.run, len(dst)-n)
			for i := range dst[n : n+k] {
				dst[n+i] = o.last
			}
			n += k
			o.run -= k
			continue
		}
		if o.left == 0 {
			break
		}
		entry := tt[o.next]
		o.next = entry >> 8
		o.left--
		b := byte(entry)
		if o.random {
			b = o.mask.flip(b)
		}
		switch {
		case o.same == 4:
			o.same, o.run = 0, int(b)
			continue
		case b == o.last:
			o.same++
		default:
			o.last, o.same = b, 1
		}
		dst[n] = b
		n++
	}
	o.crc = bzip2CRC(o.crc, dst[:n])
	return n
}

// bzip2Table is the CRC-32 of Ethernet with the highest bit first, for each byte.
var bzip2Table = func() (t [256]uint32) {
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

func bzip2CRC(crc uint32, b []byte) uint32 {
	for _, c := range b {
		crc = crc<<8 ^ bzip2Table[byte(crc>>24)^c]
	}
	return crc
}

func newBzip2Encoder() (encoder, error) {
	z, err := bzip2.NewWriter(nil, nil)
	return &streamEncoder{z: bzip2Writer{z}}, err
}

// bzip2Writer makes a bzip2.Writer like those of package compress.
type bzip2Writer struct{ *bzip2.Writer }

func (w bzip2Writer) Reset(out io.Writer) { _ = w.Writer.Reset(out) } // which never fails
