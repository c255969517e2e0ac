package avro

import (
	"bytes"
	"compress/bzip2"
	"errors"
	"fmt"
	"io"
)

// bzip2Codec reads the blocks of Avro's codec bzip2, which the library does not know.
type bzip2Codec struct{}

func (bzip2Codec) Name() string { return "bzip2" }

func (bzip2Codec) Compress([]byte) ([]byte, error) {
	return nil, errors.New("bzip2 is only read")
}

func (c bzip2Codec) Decompress(src []byte) ([]byte, error) {
	return c.DecompressBounded(src, MaxBlock)
}

// DecompressBounded implements ocf.BoundedDecompressor.
func (bzip2Codec) DecompressBounded(src []byte, most int64) ([]byte, error) {
	out, err := io.ReadAll(io.LimitReader(bzip2.NewReader(bytes.NewReader(src)), most+1))
	if err == nil && int64(len(out)) > most {
		err = fmt.Errorf("a block is larger than %d bytes when decompressed", most)
	}
	return out, err
}

func (bzip2Codec) Close() error { return nil }
