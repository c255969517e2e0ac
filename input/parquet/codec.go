package parquet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// The codecs of parquet.thrift.
const (
	codecNone   = 0
	codecSnappy = 1
	codecGzip   = 2
	codecLZO    = 3
	codecBrotli = 4
	codecLZ4    = 5 // as Hadoop frames it
	codecZstd   = 6
	codecLZ4Raw = 7
)

var errSize = errors.New("decompressed size differs from its header")

// unpack decompresses src into dst, whose size it must have. It never writes or allocates more, apart from a codec's
// window.
func unpack(codec int64, dst, src []byte) error {
	if len(dst) == 0 {
		return nil // whatever a codec makes of nothing, which some do not read again
	}
	switch codec {
	case codecSnappy:
		return unpackSnappy(dst, src)
	case codecGzip:
		r, err := gzip.NewReader(bytes.NewReader(src))
		if err != nil {
			return err
		}
		return exactly(dst, r)
	case codecBrotli:
		return exactly(dst, brotli.NewReader(bytes.NewReader(src)))
	case codecLZ4:
		return unpackLZ4(dst, src)
	case codecZstd:
		return unpackZstd(dst, src)
	case codecLZ4Raw:
		return unpackBlock(dst, src)
	case codecLZO:
		return unsupported("the codec LZO")
	}
	return unsupported("the codec of number %d", codec)
}

// exactly fills dst from r, which must end there. It reads the end, so that checksums are verified.
func exactly(dst []byte, r io.Reader) error {
	if _, err := io.ReadFull(r, dst); err != nil {
		return err
	}
	var more [1]byte
	switch n, err := io.ReadFull(r, more[:]); {
	case n > 0:
		return errSize
	case err != io.EOF:
		return err
	}
	return nil
}

func unpackSnappy(dst, src []byte) error {
	n, err := snappy.DecodedLen(src)
	if err != nil {
		return err
	}
	if n != len(dst) {
		return errSize
	}
	_, err = snappy.Decode(dst, src)
	return err
}

// zstdDecoder is shared by all files.
var zstdDecoder = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderMaxMemory(maxPage))
})

func unpackZstd(dst, src []byte) error {
	d, err := zstdDecoder()
	if err != nil {
		return err
	}
	out, err := d.DecodeAll(src, dst[:0:len(dst)])
	if err == nil && (len(out) != len(dst) || len(out) > 0 && &out[0] != &dst[0]) {
		err = errSize
	}
	return err
}

// unpackLZ4 reads what the codec LZ4 stands for in files of different writers: the blocks of Hadoop, a frame,
// or a raw block.
func unpackLZ4(dst, src []byte) error {
	if unpackHadoop(dst, src) == nil {
		return nil
	}
	if bytes.HasPrefix(src, []byte{4, 0x22, 0x4d, 0x18}) {
		return exactly(dst, lz4.NewReader(bytes.NewReader(src)))
	}
	return unpackBlock(dst, src)
}

func unpackBlock(dst, src []byte) error {
	n, err := lz4.UncompressBlock(src, dst)
	if err == nil && n != len(dst) {
		err = errSize
	}
	return err
}

// unpackHadoop reads the framing of Hadoop's block codecs: the size of a piece, unpacked, and then blocks until
// that size is reached, each after its own length.
func unpackHadoop(dst, src []byte) error {
	for len(src) > 0 {
		size, rest, ok := length(src)
		if !ok || size > int64(len(dst)) {
			return errSize
		}
		src = rest
		for size > 0 {
			n, rest, ok := length(src)
			if !ok || n > int64(len(rest)) {
				return errSize
			}
			m, err := lz4.UncompressBlock(rest[:n], dst[:size])
			if err != nil {
				return err
			}
			if m == 0 {
				return errSize
			}
			src, dst, size = rest[n:], dst[m:], size-int64(m)
		}
	}
	if len(dst) > 0 {
		return errSize
	}
	return nil
}

func length(b []byte) (n int64, rest []byte, ok bool) {
	if len(b) < 4 {
		return 0, nil, false
	}
	return int64(binary.BigEndian.Uint32(b)), b[4:], true
}
