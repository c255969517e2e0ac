package sequencefile

import (
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

var codecs = map[string]func() unpack.Decoder{
	DefaultCodec:   unpack.Zlib,
	DeflateCodec:   unpack.Zlib,
	GzipCodec:      unpack.Gzip,
	SnappyCodec:    func() unpack.Decoder { return unpack.Hadoop(unpack.Snappy) },
	Lz4Codec:       func() unpack.Decoder { return unpack.Hadoop(unpack.LZ4) },
	ZStandardCodec: func() unpack.Decoder { return unpack.Zstd },
	BZip2Codec:     func() unpack.Decoder { return new(bzip2.Decoder).Decode },
}
