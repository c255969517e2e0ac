package avro

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"sequins/internal/bzip2"
	"sequins/internal/inflate"
	"sequins/internal/unpack"
)

// A codec appends what a block decompresses to to dst. More than MaxBlock bytes are an error.
type codec func(dst, block []byte) ([]byte, error)

// newCodec returns nil if blocks are not compressed.
func newCodec(name string) (codec, error) {
	switch name {
	case "", "null":
		return nil, nil
	case "deflate":
		z := new(inflate.Decoder)
		return func(dst, block []byte) ([]byte, error) {
			dst, _, err := z.Decode(dst, block, MaxBlock)
			return dst, err
		}, nil
	case "bzip2":
		z := new(bzip2.Decoder)
		return func(dst, block []byte) ([]byte, error) { return z.Decode(dst, block, MaxBlock) }, nil
	case "snappy":
		return unpackSnappy, nil
	case "zstandard":
		z := new(unpack.Zstd)
		return func(dst, block []byte) ([]byte, error) { return z.Decode(dst, block, MaxBlock) }, nil
	}
	return nil, fmt.Errorf("the codec %q is not supported: null, deflate, snappy, zstandard and bzip2 are", name)
}

// unpackSnappy is the codec snappy: raw snappy followed by the big-endian CRC-32 of the decompressed data.
func unpackSnappy(dst, block []byte) ([]byte, error) {
	end := len(block) - crc32.Size
	if end < 0 {
		return nil, errShort
	}
	dst, err := unpack.Snappy(dst, block[:end], MaxBlock)
	if err == nil && crc32.ChecksumIEEE(dst) != binary.BigEndian.Uint32(block[end:]) {
		err = errors.New("bad checksum of a block")
	}
	return dst, err
}
