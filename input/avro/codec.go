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
	"github.com/klauspost/compress/zstd"

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

// zstdCodec decompresses small blocks at once, and large ones as a stream, which allocates the frame's window.
type zstdCodec struct {
	packed bytes.Buffer
	plain  []byte
	z      *zstd.Decoder
}

const (
	// zstdWhole is how much is decompressed at once, in bytes.
	zstdWhole = 4 << 20
	// zstdWindow is the largest window of zstd's levels (22), in bytes.
	zstdWindow = 128 << 20
)

func (c *zstdCodec) open(body io.Reader, size int64) (_ io.Reader, err error) {
	src, err := readAll(&c.packed, body, size)
	if err != nil {
		return nil, err
	}
	if c.z == nil {
		// With a concurrency of 1 there are no goroutines, so that a decoder needs no Close.
		c.z, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxMemory(1<<62), zstd.WithDecoderMaxWindow(zstdWindow))
		if err != nil {
			return nil, err
		}
	}
	most, err := zstdframe.Most(src)
	if err != nil {
		return nil, err
	}
	if most > zstdWhole {
		return c.z, c.z.Reset(bytes.NewReader(src))
	}
	c.plain, err = c.z.DecodeAll(src, c.plain[:0])
	return bytes.NewReader(c.plain), err
}
