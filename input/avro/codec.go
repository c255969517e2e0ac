package avro

import (
	"bytes"
	"compress/bzip2"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/snappy"

	"sequins/internal/zstdframe"
)

// A codec returns a reader of what a block decompresses to, valid until the next call. The block must not change meanwhile.
type codec func(block []byte) (io.Reader, error)

func newCodec(name string) (codec, error) {
	packed := new(bytes.Reader)
	switch name {
	case "", "null":
		return func(block []byte) (io.Reader, error) {
			packed.Reset(block)
			return packed, nil
		}, nil
	case "deflate":
		z := flate.NewReader(nil)
		return func(block []byte) (io.Reader, error) {
			packed.Reset(block)
			return z, z.(flate.Resetter).Reset(packed, nil)
		}, nil
	case "bzip2":
		return func(block []byte) (io.Reader, error) {
			packed.Reset(block)
			return bzip2.NewReader(packed), nil
		}, nil
	case "snappy":
		return new(snappyCodec).open, nil
	case "zstandard":
		return new(zstdframe.Decoder).Open, nil
	}
	return nil, fmt.Errorf("the codec %q is not supported: null, deflate, snappy, zstandard and bzip2 are", name)
}

// snappyExpansion is snappy's maximum expansion: 64 bytes for 3.
const snappyExpansion = 64.0 / 3

// snappyCodec is raw snappy followed by the big-endian CRC-32 of the decompressed data.
type snappyCodec struct {
	plain []byte
	out   bytes.Reader // of plain
}

func (c *snappyCodec) open(src []byte) (_ io.Reader, err error) {
	const sumSize = 4
	if len(src) < sumSize {
		return nil, errShort
	}
	src, sum := src[:len(src)-sumSize], binary.BigEndian.Uint32(src[len(src)-sumSize:])
	n, err := snappy.DecodedLen(src)
	if err != nil {
		return nil, err
	}
	if n > MaxBlock || float64(n) > snappyExpansion*float64(len(src)) {
		return nil, fmt.Errorf("a block of %d bytes has a decompressed size of %d", len(src), n)
	}
	if c.plain, err = snappy.Decode(c.plain[:cap(c.plain)], src); err != nil {
		return nil, err
	}
	if crc32.ChecksumIEEE(c.plain) != sum {
		return nil, errors.New("bad checksum of a block")
	}
	c.out.Reset(c.plain)
	return &c.out, nil
}
