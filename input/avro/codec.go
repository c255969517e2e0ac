package avro

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"sequins/internal/bzip2"
	"sequins/internal/unpack"
)

// newCodec returns the decoder of blocks; nil if they are not compressed.
func newCodec(name string) (unpack.Decoder, error) {
	switch name {
	case "", "null":
		return nil, nil
	case "deflate":
		return unpack.Deflate(), nil
	case "bzip2":
		return new(bzip2.Decoder).Decode, nil
	case "snappy":
		return unpackSnappy, nil
	case "zstandard":
		return unpack.Zstd, nil
	}
	return nil, fmt.Errorf("the codec %q is not supported: null, deflate, snappy, zstandard and bzip2 are", name)
}

// unpackSnappy is the codec snappy: raw snappy followed by the big-endian CRC-32 of the decompressed data.
func unpackSnappy(dst, block []byte, limit int) ([]byte, error) {
	end := len(block) - crc32.Size
	if end < 0 {
		return nil, errShort
	}
	dst, err := unpack.Snappy(dst, block[:end], limit)
	if err == nil && crc32.ChecksumIEEE(dst) != binary.BigEndian.Uint32(block[end:]) {
		err = errors.New("bad checksum of a block")
	}
	return dst, err
}
