package sparkey

import "sequins/internal/unpack"

// maxCompressed returns the maximum compressed size of n bytes: snappy's bound, with a constant for zstd's headers.
func maxCompressed(n int) int { return 64 + n + n/6 }

// decoder decompresses one block after another.
type decoder struct {
	compression Compression
	limit       int // bytes of a decompressed block
	zstd        unpack.Zstd
}

// decode appends the content of a block to dst.
func (d *decoder) decode(dst, src []byte) ([]byte, error) {
	if d.compression == Snappy {
		return unpack.Snappy(dst, src, d.limit)
	}
	return d.zstd.Decode(dst, src, d.limit)
}
