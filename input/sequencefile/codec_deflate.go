package sequencefile

import (
	"bytes"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
)

// streamDecoder is a decoder for zlib (RFC 1950) and gzip (RFC 1952). Several streams one after the other (gzip:
// members) count as one, as in Hadoop.
type streamDecoder struct {
	src    bytes.Reader
	stream io.Reader // nil before the first stream
	open   bool      // within a stream
	// start makes stream read a stream from src.
	start func(d *streamDecoder) error
}

func newZlibDecoder() decoder { return &streamDecoder{start: startZlib} }
func newGzipDecoder() decoder { return &streamDecoder{start: startGzip} }

func startZlib(d *streamDecoder) (err error) {
	if known, ok := d.stream.(zlib.Resetter); ok {
		return known.Reset(&d.src, nil)
	}
	d.stream, err = zlib.NewReader(&d.src)
	return err
}

func startGzip(d *streamDecoder) (err error) {
	known, ok := d.stream.(*gzip.Reader)
	if !ok {
		known = new(gzip.Reader)
		d.stream = known
	}
	return known.Reset(&d.src)
}

func (d *streamDecoder) Reset(src []byte) {
	d.src.Reset(src)
	d.open = false
}

// leastRoom is the least room for what is decompressed at a time.
const leastRoom = 4 << 10

func (d *streamDecoder) More(dst []byte) ([]byte, error) {
	for {
		if !d.open {
			if d.src.Len() == 0 {
				return dst, io.EOF
			}
			if err := d.start(d); err != nil {
				return dst, noEOF(err)
			}
			d.open = true
		}
		dst = grow(dst, leastRoom)
		n, err := d.stream.Read(dst[len(dst):cap(dst)])
		switch dst = dst[:len(dst)+n]; {
		case err == io.EOF:
			d.open = false
		case err != nil:
			return dst, noEOF(err)
		}
		if n > 0 {
			return dst, nil
		}
	}
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
