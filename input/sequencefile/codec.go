package sequencefile

import (
	"sync"

	"sequins/internal/bzip2"
	"sequins/internal/unpack"
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

// decoder decompresses one buffer after another.
type decoder interface {
	// Decode appends what src decompresses to to dst. More than limit bytes are an error, and so are bytes that are left. It allocates
	// at most a constant factor of the decompressed size.
	Decode(dst, src []byte, limit int) ([]byte, error)
}

// hadoopBlocks is a decoder for Hadoop's blocks of chunks.
type hadoopBlocks func(dst, src []byte, limit int) ([]byte, error) // decompresses a chunk

func (chunk hadoopBlocks) Decode(dst, src []byte, limit int) ([]byte, error) {
	return unpack.Hadoop(dst, src, limit, chunk)
}

// codec creates columns, and pools unused ones.
type codec struct {
	newDecoder func() decoder
	idle       sync.Pool
}

// maxIdle is the largest buffer, in bytes, that an unused column keeps.
const maxIdle = 8 << 20

func (c *codec) getColumn() *column {
	if col, ok := c.idle.Get().(*column); ok {
		return col
	}
	return &column{dec: c.newDecoder()}
}

func (c *codec) putColumn(col *column) {
	col.rest = nil
	if cap(col.buf) > maxIdle {
		col.buf = nil
	}
	c.idle.Put(col)
}

var codecs = func() map[string]*codec {
	zlib := &codec{newDecoder: func() decoder { return newDeflate(zlibFraming) }}
	return map[string]*codec{
		DefaultCodec:   zlib,
		DeflateCodec:   zlib,
		GzipCodec:      {newDecoder: func() decoder { return newDeflate(gzipFraming) }},
		SnappyCodec:    {newDecoder: func() decoder { return hadoopBlocks(unpack.Snappy) }},
		Lz4Codec:       {newDecoder: func() decoder { return hadoopBlocks(unpack.LZ4) }},
		ZStandardCodec: {newDecoder: func() decoder { return new(unpack.Zstd) }},
		BZip2Codec:     {newDecoder: func() decoder { return new(bzip2.Decoder) }},
	}
}()
