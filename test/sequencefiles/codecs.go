package sequencefiles

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"slices"

	"github.com/dsnet/compress/bzip2"
	"github.com/golang/snappy"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// The supported codecs, by their Java class names.
const (
	DefaultCodec   = "org.apache.hadoop.io.compress.DefaultCodec" // zlib
	DeflateCodec   = "org.apache.hadoop.io.compress.DeflateCodec" // zlib too
	GzipCodec      = "org.apache.hadoop.io.compress.GzipCodec"
	SnappyCodec    = "org.apache.hadoop.io.compress.SnappyCodec"
	Lz4Codec       = "org.apache.hadoop.io.compress.Lz4Codec"
	ZStandardCodec = "org.apache.hadoop.io.compress.ZStandardCodec"
	BZip2Codec     = "org.apache.hadoop.io.compress.BZip2Codec"
)

// Codecs returns the class names of all codecs.
func Codecs() []string {
	return []string{DefaultCodec, DeflateCodec, GzipCodec, SnappyCodec, Lz4Codec, ZStandardCodec, BZip2Codec}
}

// Compress returns src compressed with a codec, which must be one of Codecs, and framed like Hadoop.
func Compress(codec string, src []byte) ([]byte, error) { return codecs[codec]()(nil, src) }

// An encoder appends src to dst, compressed and framed like Hadoop.
type encoder func(dst, src []byte) ([]byte, error)

var codecs = map[string]func() encoder{
	DefaultCodec:   newZlibEncoder,
	DeflateCodec:   newZlibEncoder,
	GzipCodec:      func() encoder { return streamEncoder(gzip.NewWriter(nil)) },
	SnappyCodec:    func() encoder { return blockEncoder(hadoopBuffer-hadoopBuffer/6-32, appendSnappy) },
	Lz4Codec:       newLz4Encoder,
	ZStandardCodec: newZstdEncoder,
	BZip2Codec:     newBzip2Encoder,
}

func newZlibEncoder() encoder { return streamEncoder(zlib.NewWriter(nil)) }

func newBzip2Encoder() encoder {
	z, err := bzip2.NewWriter(nil, nil)
	return failing(streamEncoder(bzip2Writer{z}), err)
}

// bzip2Writer makes a bzip2.Writer like those of package compress.
type bzip2Writer struct{ *bzip2.Writer }

func (w bzip2Writer) Reset(out io.Writer) { _ = w.Writer.Reset(out) } // which never fails

// newZstdEncoder returns an encoder for zstd, one frame each time.
func newZstdEncoder() encoder {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithZeroFrames(true))
	return failing(func(dst, src []byte) ([]byte, error) { return z.EncodeAll(src, dst), nil }, err)
}

// failing returns an encoder that fails if it could not be made.
func failing(e encoder, err error) encoder {
	if err != nil {
		return func(dst, _ []byte) ([]byte, error) { return dst, err }
	}
	return e
}

// streamEncoder returns an encoder that writes a stream with z.
func streamEncoder(z interface {
	io.WriteCloser
	Reset(w io.Writer)
}) encoder {
	return func(dst, src []byte) ([]byte, error) {
		out := bytes.NewBuffer(dst)
		z.Reset(out)
		if _, err := z.Write(src); err != nil {
			return dst, err
		}
		err := z.Close()
		return out.Bytes(), err
	}
}

// hadoopBuffer is the default size of the buffers that Hadoop reads and writes chunks with.
const hadoopBuffer = 256 << 10

func newLz4Encoder() encoder {
	c := new(lz4.Compressor)
	return blockEncoder(hadoopBuffer-hadoopBuffer/255-16, func(dst, src []byte) ([]byte, error) { return appendLz4(c, dst, src) })
}

// blockEncoder returns an encoder for Hadoop's blocks of chunks: one block, of as many chunks as its size needs. A chunk has
// up to maxInput bytes before compression, so that it fits into Hadoop's buffer after it.
func blockEncoder(maxInput int, chunk encoder) encoder {
	return func(dst, src []byte) (_ []byte, err error) {
		dst = binary.BigEndian.AppendUint32(dst, uint32(len(src)))
		for len(src) > 0 {
			n := min(len(src), maxInput)
			head := len(dst)
			dst = append(dst, 0, 0, 0, 0)
			if dst, err = chunk(dst, src[:n]); err != nil {
				return dst, err
			}
			binary.BigEndian.PutUint32(dst[head:], uint32(len(dst)-head-4))
			src = src[n:]
		}
		return dst, nil
	}
}

func appendSnappy(dst, src []byte) ([]byte, error) {
	dst = slices.Grow(dst, snappy.MaxEncodedLen(len(src)))
	b := snappy.Encode(dst[len(dst):cap(dst)], src)
	return dst[:len(dst)+len(b)], nil
}

func appendLz4(c *lz4.Compressor, dst, src []byte) ([]byte, error) {
	dst = slices.Grow(dst, lz4.CompressBlockBound(len(src)))
	n, err := c.CompressBlock(src, dst[len(dst):cap(dst)])
	if err == nil && n == 0 {
		err = errors.New("lz4: block was not compressed") // it always is, into a buffer of this size
	}
	return dst[:len(dst)+n], err
}
