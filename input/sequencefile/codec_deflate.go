package sequencefile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/adler32"
	"hash/crc32"

	"sequins/internal/inflate"
	"sequins/internal/unpack"
)

var (
	errDeflateHeader   = errors.New("deflate: bad header")
	errDeflateChecksum = errors.New("deflate: bad checksum")
)

// deflateDecoder is a decoder for zlib (RFC 1950) and gzip (RFC 1952). Several streams one after the other (gzip:
// members) count as one, as in Hadoop.
type deflateDecoder struct {
	z inflate.Decoder
	framing
}

// framing is what zlib and gzip put around a deflate stream.
type framing struct {
	// header returns what follows the header at the beginning of src.
	header   func(src []byte) ([]byte, error)
	checksum func(b []byte) uint32
	// trailer checks the trailer at the beginning of src, and returns what follows it.
	trailer func(src []byte, sum, size uint32) ([]byte, error)
}

var (
	zlibFraming = framing{zlibHeader, adler32.Checksum, zlibTrailer}
	gzipFraming = framing{gzipHeader, crc32.ChecksumIEEE, gzipTrailer}
)

func newDeflate(f framing) unpack.Decoder { return (&deflateDecoder{framing: f}).decode }

func (d *deflateDecoder) decode(dst, src []byte, limit int) (_ []byte, err error) {
	end := len(dst) + limit
	for len(src) > 0 {
		if src, err = d.header(src); err != nil {
			return dst, err
		}
		start := len(dst)
		if dst, src, err = d.z.Decode(dst, src, end-start); err != nil {
			return dst, err
		}
		if src, err = d.trailer(src, d.checksum(dst[start:]), uint32(len(dst)-start)); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

// zlibHeader: method and window size, flags; together a multiple of 31.
func zlibHeader(src []byte) ([]byte, error) {
	if len(src) < 2 {
		return nil, errTruncated
	}
	const deflate, maxWindow, dictionary = 8, 7, 1 << 5
	if src[0]&15 != deflate || src[0]>>4 > maxWindow || src[1]&dictionary != 0 || binary.BigEndian.Uint16(src)%31 != 0 {
		return nil, errDeflateHeader
	}
	return src[2:], nil
}

func zlibTrailer(src []byte, sum, _ uint32) ([]byte, error) {
	if len(src) < 4 {
		return nil, errTruncated
	}
	if binary.BigEndian.Uint32(src) != sum {
		return nil, errDeflateChecksum
	}
	return src[4:], nil
}

// gzipHeader: magic, method, flags, time, two ignored bytes; then optional fields by flags.
func gzipHeader(src []byte) ([]byte, error) {
	const size = 10
	if len(src) < size {
		return nil, errTruncated
	}
	if src[0] != 0x1f || src[1] != 0x8b || src[2] != 8 {
		return nil, errDeflateHeader
	}
	const text, checksum, extra, name, comment = 1, 2, 4, 8, 16
	flags, rest := src[3], src[size:]
	if flags&^(text|checksum|extra|name|comment) != 0 {
		return nil, errDeflateHeader
	}
	if flags&extra != 0 {
		if len(rest) < 2 || len(rest)-2 < int(binary.LittleEndian.Uint16(rest)) {
			return nil, errTruncated
		}
		rest = rest[2+int(binary.LittleEndian.Uint16(rest)):]
	}
	for _, flag := range []byte{name, comment} {
		if flags&flag != 0 {
			i := bytes.IndexByte(rest, 0)
			if i < 0 {
				return nil, errTruncated
			}
			rest = rest[i+1:]
		}
	}
	if flags&checksum != 0 {
		if len(rest) < 2 {
			return nil, errTruncated
		}
		if uint16(crc32.ChecksumIEEE(src[:len(src)-len(rest)])) != binary.LittleEndian.Uint16(rest) {
			return nil, errDeflateChecksum
		}
		rest = rest[2:]
	}
	return rest, nil
}

func gzipTrailer(src []byte, sum, size uint32) ([]byte, error) {
	if len(src) < 8 {
		return nil, errTruncated
	}
	if binary.LittleEndian.Uint32(src) != sum || binary.LittleEndian.Uint32(src[4:]) != size {
		return nil, errDeflateChecksum
	}
	return src[8:], nil
}
