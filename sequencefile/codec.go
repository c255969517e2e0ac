package sequencefile

import (
	"slices"
	"sync"
)

// The codecs that are read and written, by the Java class names that stand in files.
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

// decoder decompresses one buffer after the other, each in pieces.
type decoder interface {
	// reset starts on src, which must stay as it is while it is decompressed. nil lets go of what was there before.
	reset(src []byte)
	// more appends the next piece to dst, at least one byte. At the end of src, all of which must have been used, it
	// returns io.EOF. It does not allocate more than a constant factor of what src really holds.
	more(dst []byte) ([]byte, error)
}

// grow makes room for n more bytes behind dst. What is there at least doubles, so that growing to a size costs as much
// as two times that size.
func grow(dst []byte, n int) []byte {
	if n <= cap(dst)-len(dst) {
		return dst
	}
	return slices.Grow(dst, max(n, len(dst)))
}

// encoder compresses one buffer after the other.
type encoder interface {
	// encode appends src, compressed and framed as Hadoop does it, to dst.
	encode(dst, src []byte) ([]byte, error)
}

// codec makes columns and encoders, and keeps the columns that are not in use.
type codec struct {
	newDecoder func() decoder
	newEncoder func() (encoder, error)
	idle       sync.Pool
}

// maxIdle is the largest window that a column keeps when it is not in use, in bytes.
const maxIdle = 2 * prefill

func (c *codec) getColumn() *column {
	if col, ok := c.idle.Get().(*column); ok {
		return col
	}
	return &column{dec: c.newDecoder()}
}

func (c *codec) putColumn(col *column) {
	col.dec.reset(nil)
	if cap(col.buf) > maxIdle {
		col.buf = nil
	}
	c.idle.Put(col)
}

var codecs = func() map[string]*codec {
	zlib := &codec{newDecoder: newZlibDecoder, newEncoder: newZlibEncoder}
	return map[string]*codec{
		DefaultCodec:   zlib,
		DeflateCodec:   zlib,
		GzipCodec:      {newDecoder: newGzipDecoder, newEncoder: newGzipEncoder},
		SnappyCodec:    {newDecoder: newSnappyDecoder, newEncoder: newSnappyEncoder},
		Lz4Codec:       {newDecoder: newLz4Decoder, newEncoder: newLz4Encoder},
		ZStandardCodec: {newDecoder: newZstdDecoder, newEncoder: newZstdEncoder},
		BZip2Codec:     {newDecoder: newBzip2Decoder, newEncoder: newBzip2Encoder},
	}
}()
