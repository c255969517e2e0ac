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

// codec decompresses one block after another. open returns a reader of the decompressed content of the next size bytes
// of body, valid until the next call. It is an error if body has fewer.
type codec interface {
	open(body io.Reader, size int64) (io.Reader, error)
}

func newCodec(name string) (codec, error) {
	switch name {
	case "", "null":
		return nullCodec{}, nil
	case "deflate":
		return deflateCodec{flate.NewReader(nil)}, nil
	case "bzip2":
		return bzip2Codec{}, nil
	case "snappy":
		return new(snappyCodec), nil
	case "zstandard":
		return new(zstdCodec), nil
	}
	return nil, fmt.Errorf("the codec %q is not supported: null, deflate, snappy, zstandard and bzip2 are", name)
}

type nullCodec struct{}

func (nullCodec) open(body io.Reader, _ int64) (io.Reader, error) { return body, nil }

type deflateCodec struct{ z io.ReadCloser }

func (c deflateCodec) open(body io.Reader, _ int64) (io.Reader, error) {
	return c.z, c.z.(flate.Resetter).Reset(body, nil)
}

type bzip2Codec struct{}

func (bzip2Codec) open(body io.Reader, _ int64) (io.Reader, error) { return bzip2.NewReader(body), nil }

// readAll reads a whole block into buf, which grows with the bytes received.
func readAll(buf *bytes.Buffer, body io.Reader, size int64) ([]byte, error) {
	buf.Reset()
	n, err := buf.ReadFrom(body)
	if err == nil && n < size {
		err = errShort
	}
	return buf.Bytes(), err
}

// snappyCodec is raw snappy followed by the big-endian CRC-32 of the decompressed data.
type snappyCodec struct {
	packed bytes.Buffer
	plain  []byte
}

// snappyExpansion is snappy's maximum expansion: 64 bytes for 3.
const snappyExpansion = 64.0 / 3

func (c *snappyCodec) open(body io.Reader, size int64) (io.Reader, error) {
	src, err := readAll(&c.packed, body, size)
	if err != nil {
		return nil, err
	}
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
	return bytes.NewReader(c.plain), nil
}

// zstdCodec is zstd, in one frame or several.
type zstdCodec struct {
	packed bytes.Buffer
	frames zstdframe.Decoder
}

func (c *zstdCodec) open(body io.Reader, size int64) (io.Reader, error) {
	src, err := readAll(&c.packed, body, size)
	if err != nil {
		return nil, err
	}
	return c.frames.Open(src)
}
