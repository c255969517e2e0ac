package sparkey

import "sequins/internal/unpack"

// maxCompressed returns the maximum compressed size of n bytes: snappy's bound, with a constant for zstd's headers.
func maxCompressed(n int) int { return 64 + n + n/6 }

// decoder decompresses one block after another.
type decoder struct {
	compression Compression
	limit       int // bytes of a decompressed block
	zstd        unpack.Zstd
	plain       []byte
}

// decode returns the content of a block, valid until the next call.
func (d *decoder) decode(src []byte) (_ []byte, err error) {
	if d.compression == Snappy {
		d.plain, err = unpack.Snappy(d.plain[:0], src, d.limit)
	} else {
		d.plain, err = d.zstd.Decode(d.plain[:0], src, d.limit)
	}
	return d.plain, err
}
