package sequencefile

import (
	"slices"
	"sync"

	"sequins/internal/bzip2"
)

// The supported codecs, by their Java class names in files.
const (
	DefaultCodec   = "org.apache.hadoop.io.compress.DefaultCodec" // zlib
	DeflateCodec   = "org.apache.hadoop.io.compress.DeflateCodec" // zlib too
	GzipCodec      = "org.apache.hadoop.io.compress.GzipCodec"
	SnappyCodec    = "org.apache.hadoop.io.compress.SnappyCodec"
	Lz4Codec       = "org.apache.hadoop.io.compress.Lz4Codec"
	ZStandardCodec = "org.apache.hadoop.io.compress.ZStandardCodec"
	BZip2Codec     = "org.apache.hadoop.io.compress.BZip2Codec"
)

// decoder decompresses one buffer after another, in pieces.
type decoder interface {
	// Reset starts on src, which must not change while it is decompressed. Reset(nil) releases the previous src.
	Reset(src []byte)
	// More appends the next piece, at least one byte, to dst. At the end of src it returns io.EOF, or an error if bytes
	// are left. It allocates at most a constant factor of the decompressed size.
	More(dst []byte) ([]byte, error)
}

// grow makes room for n more bytes in dst. It at least doubles the capacity, so that growing to a size costs as much as
// copying twice that size.
func grow(dst []byte, n int) []byte {
	if n <= cap(dst)-len(dst) {
		return dst
	}
	return slices.Grow(dst, max(n, len(dst)))
}

// codec creates columns, and pools unused ones.
type codec struct {
	newDecoder func() decoder
	idle       sync.Pool
}

// maxIdle is the largest window, in bytes, that an unused column keeps.
const maxIdle = 2 * prefill

func (c *codec) getColumn() *column {
	if col, ok := c.idle.Get().(*column); ok {
		return col
	}
	return &column{dec: c.newDecoder()}
}

func (c *codec) putColumn(col *column) {
	col.dec.Reset(nil)
	if cap(col.buf) > maxIdle {
		col.buf = nil
	}
	c.idle.Put(col)
}

var codecs = func() map[string]*codec {
	zlib := &codec{newDecoder: newZlibDecoder}
	return map[string]*codec{
		DefaultCodec:   zlib,
		DeflateCodec:   zlib,
		GzipCodec:      {newDecoder: newGzipDecoder},
		SnappyCodec:    {newDecoder: newSnappyDecoder},
		Lz4Codec:       {newDecoder: newLz4Decoder},
		ZStandardCodec: {newDecoder: newZstdDecoder},
		BZip2Codec:     {newDecoder: func() decoder { return new(bzip2.Decoder) }},
	}
}()
