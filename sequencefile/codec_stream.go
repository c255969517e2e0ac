package sequencefile

import (
	"bytes"
	"io"
	"slices"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
)

// minRead is the least room that a stream is given to decompress into.
const minRead = 4 << 10

// streamDecoder is a decoder for the formats that are streams: zlib and gzip. Several streams (gzip: members) one after
// the other count as one, as in Hadoop.
type streamDecoder struct {
	src   bytes.Reader
	z     io.Reader
	start func(z io.Reader, src *bytes.Reader) (io.Reader, error) // begins a stream, with z again unless it is nil
	open  bool                                                    // z is within a stream
}

func newZlibDecoder() decoder {
	return &streamDecoder{start: func(z io.Reader, src *bytes.Reader) (io.Reader, error) {
		if z == nil {
			return zlib.NewReader(src)
		}
		return z, z.(zlib.Resetter).Reset(src, nil)
	}}
}

func newGzipDecoder() decoder {
	return &streamDecoder{start: func(z io.Reader, src *bytes.Reader) (io.Reader, error) {
		if z == nil {
			return gzip.NewReader(src)
		}
		return z, z.(*gzip.Reader).Reset(src)
	}}
}

func (d *streamDecoder) reset(src []byte) {
	d.src.Reset(src)
	d.open = false
}

func (d *streamDecoder) more(dst []byte) ([]byte, error) {
	for {
		if !d.open {
			if d.src.Len() == 0 {
				return dst, io.EOF
			}
			z, err := d.start(d.z, &d.src)
			if err != nil {
				return dst, noEOF(err)
			}
			d.z, d.open = z, true
		}
		dst = slices.Grow(dst, minRead)
		n, err := d.z.Read(dst[len(dst):cap(dst)])
		dst = dst[:len(dst)+n]
		if err == io.EOF {
			d.open = false
		} else if err != nil {
			return dst, noEOF(err)
		}
		if n > 0 {
			return dst, nil
		}
	}
}

// noEOF makes the end of the input within a stream what it is here: damage.
func noEOF(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return errTruncated
	}
	return err
}

// streamEncoder is an encoder for zlib, gzip and bzip2.
type streamEncoder struct {
	out appender
	z   interface {
		io.WriteCloser
		Reset(w io.Writer)
	}
}

func newZlibEncoder() (encoder, error) { return &streamEncoder{z: zlib.NewWriter(nil)}, nil }
func newGzipEncoder() (encoder, error) { return &streamEncoder{z: gzip.NewWriter(nil)}, nil }

func (e *streamEncoder) encode(dst, src []byte) ([]byte, error) {
	e.out.b = dst
	e.z.Reset(&e.out)
	if _, err := e.z.Write(src); err != nil {
		return dst, err
	}
	err := e.z.Close()
	dst, e.out.b = e.out.b, nil
	return dst, err
}

// appender is an io.Writer that appends.
type appender struct{ b []byte }

func (a *appender) Write(p []byte) (int, error) {
	a.b = append(a.b, p...)
	return len(p), nil
}
