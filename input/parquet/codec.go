package parquet

import (
	"bytes"
	"errors"
	"io"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/pierrec/lz4/v4"

	"sequins/internal/unpack"
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

// decompress decompresses src into dst, whose size it must have. It never writes or allocates more, apart from a codec's
// window.
func decompress(codec int64, dst, src []byte) error {
	if len(dst) == 0 {
		return nil // whatever a codec makes of nothing, which some do not read again
	}
	switch codec {
	case codecSnappy:
		out, err := unpack.Snappy(dst[:0:len(dst)], src, len(dst))
		return filled(dst, out, err)
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
		out, err := unpack.Zstd(dst[:0:len(dst)], src, len(dst))
		return filled(dst, out, err)
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

// unpackLZ4 reads what the codec LZ4 stands for in files of different writers: the blocks of Hadoop, a frame,
// or a raw block.
func unpackLZ4(dst, src []byte) error {
	out, err := unpack.Hadoop(unpack.LZ4)(dst[:0:len(dst)], src, len(dst))
	if filled(dst, out, err) == nil {
		return nil
	}
	if bytes.HasPrefix(src, []byte{4, 0x22, 0x4d, 0x18}) {
		return exactly(dst, lz4.NewReader(bytes.NewReader(src)))
	}
	return unpackBlock(dst, src)
}

func unpackBlock(dst, src []byte) error {
	n, err := lz4.UncompressBlock(src, dst)
	if err != nil {
		return err
	}
	return filled(dst, dst[:n], nil)
}

// filled checks that out, which has been decompressed into dst, has its size. A decoder may have taken another memory for it.
func filled(dst, out []byte, err error) error {
	switch {
	case err != nil:
		return err
	case len(out) != len(dst):
		return errSize
	case &out[0] != &dst[0]:
		copy(dst, out)
	}
	return nil
}
