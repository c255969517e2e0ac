package unpack

import (
	"bytes"
	"io"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
)

// Deflate returns a Decoder of the deflate stream (RFC 1951) at the beginning of its input. It is for one goroutine.
func Deflate() Decoder {
	in := new(bytes.Reader)
	z := flate.NewReader(in)
	return func(dst, src []byte, limit int) ([]byte, error) {
		in.Reset(src)
		if err := z.(flate.Resetter).Reset(in, nil); err != nil {
			return dst, err
		}
		return readAll(dst, z, limit)
	}
}

// Zlib returns a Decoder of zlib streams (RFC 1950), several of which count as one, as in Hadoop. It is for one goroutine.
func Zlib() Decoder {
	in := new(bytes.Reader)
	var z io.ReadCloser
	return func(dst, src []byte, limit int) (_ []byte, err error) {
		end := len(dst) + limit
		for in.Reset(src); in.Len() > 0 && err == nil; {
			if z == nil {
				z, err = zlib.NewReader(in)
			} else {
				err = z.(zlib.Resetter).Reset(in, nil)
			}
			if err == nil {
				dst, err = readAll(dst, z, end-len(dst))
			}
		}
		return dst, err
	}
}

// Gzip returns a Decoder of gzip members (RFC 1952), which count as one stream. It is for one goroutine.
func Gzip() Decoder {
	in, z := new(bytes.Reader), new(gzip.Reader)
	return func(dst, src []byte, limit int) ([]byte, error) {
		if len(src) == 0 {
			return dst, nil
		}
		in.Reset(src)
		err := z.Reset(in)
		if err == nil {
			return readAll(dst, z, limit)
		}
		if err == io.EOF { // within a header
			err = io.ErrUnexpectedEOF
		}
		return dst, err
	}
}
