package blocks

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
)

// Compression names how a block is compressed. The numbers are part of the format.
type Compression uint8

// The codecs of a page. A page that a codec does not shrink is stored as None.
const (
	None Compression = 0
	// FSST encodes each record by itself, so that a lookup decodes no other. Chunks of large values are packed by
	// snappy.
	FSST Compression = 1
	Zstd Compression = 2

	// snappy is a codec of chunks alone.
	snappy Compression = 3
)

var compressionNames = [...]string{None: "none", FSST: "fsst", Zstd: "zstd"}

// ParseCompression returns the compression of a name as the configuration spells it. What Stripe's sequins calls snappy
// is FSST, the usual one.
func ParseCompression(name string) (Compression, error) {
	if name == "snappy" {
		return FSST, nil
	}
	if c := slices.Index(compressionNames[:], name); c >= 0 {
		return Compression(c), nil
	}
	return None, fmt.Errorf("unknown compression %q: want fsst, none or zstd", name)
}

// String returns the name that ParseCompression reads.
func (c Compression) String() string {
	if int(c) < len(compressionNames) {
		return compressionNames[c]
	}
	return fmt.Sprintf("compression(%d)", uint8(c))
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// compressor packs pages and chunks of large values with one codec. It belongs to one writer: equal input gives equal
// output whatever was packed before.
type compressor struct {
	codec Compression // None, Zstd or snappy
	zstd  *zstd.Encoder
}

func newCompressor(c Compression) (*compressor, error) {
	p := &compressor{codec: c}
	switch c {
	case None:
	case FSST:
		p.codec = snappy
	case Zstd:
		enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest),
			zstd.WithEncoderCRC(false), zstd.WithSingleSegment(true))
		if err != nil {
			return nil, fmt.Errorf("zstd encoder: %w", err)
		}
		p.zstd = enc
	default:
		return nil, fmt.Errorf("unknown %v", c)
	}
	return p, nil
}

// appendPacked appends raw to dst as it is stored: packed where that makes it smaller, with its
// trailer, whose checksum also covers ordinal.
func (p *compressor) appendPacked(dst, raw []byte, ordinal uint32) []byte {
	start := len(dst)
	dst, codec := p.appendShrunk(dst, raw)
	return appendTrailer(dst, crc32.Checksum(dst[start:], castagnoli), len(raw), codec, ordinal)
}

// appendShrunk appends raw to dst, packed where that makes it smaller, and returns the codec that it has then.
func (p *compressor) appendShrunk(dst, raw []byte) ([]byte, Compression) {
	start := len(dst)
	switch p.codec {
	case snappy:
		dst = grow(dst, s2.MaxEncodedLen(len(raw)))
		dst = dst[:start+len(s2.EncodeSnappy(dst[start:cap(dst)], raw))]
	case Zstd:
		dst = p.zstd.EncodeAll(raw, dst)
	}
	if p.codec == None || len(dst)-start >= len(raw) {
		return append(dst[:start], raw...), None
	}
	return dst, p.codec
}

// appendTrailer appends what stands behind data whose CRC-32C is crc.
func appendTrailer(dst []byte, crc uint32, raw int, codec Compression, ordinal uint32) []byte {
	dst = append(dst, byte(raw), byte(raw>>8), byte(raw>>16), byte(codec))
	crc = crc32.Update(crc, castagnoli, dst[len(dst)-4:])
	return binary.LittleEndian.AppendUint32(dst, crc^ordinal*ordinalFactor)
}

func grow(b []byte, n int) []byte {
	if cap(b)-len(b) >= n {
		return b
	}
	return append(make([]byte, 0, 2*cap(b)+n), b...)[:len(b)]
}

// ordinalFactor makes a page which lies where another belongs damage too: its checksum is xored with
// its ordinal times this.
const ordinalFactor = 0x9e3779b1

// checksum is the checksum of a page without its last four bytes.
func checksum(b []byte, ordinal uint32) uint32 {
	return crc32.Checksum(b, castagnoli) ^ ordinal*ordinalFactor
}

var (
	errChecksum  = errors.New("checksum mismatch")
	errTruncated = errors.New("shorter than its trailer")
	errUnpacked  = errors.New("unpacks to another length than it says")
	errCodec     = errors.New("unknown codec")
	errRawLength = errors.New("impossible length")
)

// checkPacked verifies the checksum of a stored page.
func checkPacked(stored []byte, ordinal uint32) error {
	n := len(stored) - 4
	if n < trailerSize-4 {
		return errTruncated
	}
	if binary.LittleEndian.Uint32(stored[n:]) != checksum(stored[:n], ordinal) {
		return errChecksum
	}
	return nil
}

// storedCodec returns the codec of a stored page and its length unpacked.
func storedCodec(stored []byte) (Compression, int, error) {
	n := len(stored) - trailerSize
	if n < 0 {
		return None, 0, errTruncated
	}
	raw := int(stored[n]) | int(stored[n+1])<<8 | int(stored[n+2])<<16
	codec := Compression(stored[n+3])
	if raw > maxStored || codec == None && raw != n {
		return None, 0, errRawLength
	}
	return codec, raw, nil
}

// zstdDecoder is shared: DecodeAll may be called by many at once and keeps no state between calls.
var zstdDecoder, zstdDecoderErr = zstd.NewReader(nil, zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderMaxWindow(1<<20), zstd.WithDecoderLowmem(true))

// unpack returns the data of a stored page: in s where it was packed as a whole, and as a part of
// stored where it was not.
func (s *Scratch) unpack(stored []byte) ([]byte, error) {
	codec, raw, err := storedCodec(stored)
	if err != nil {
		return nil, err
	}
	data := stored[:len(stored)-trailerSize]
	if codec == None || codec == FSST {
		return data, nil
	}
	s.raw = grow(s.raw[:0], raw)[:raw]
	return decompress(s.raw, data, codec)
}

func decompress(dst, data []byte, codec Compression) ([]byte, error) {
	raw, err := len(dst), error(nil)
	switch codec {
	case snappy:
		if n, err := s2.DecodedLen(data); err != nil || n != raw {
			return nil, errUnpacked
		}
		dst, err = s2.Decode(dst, data)
	case Zstd:
		if zstdDecoderErr != nil {
			return nil, zstdDecoderErr
		}
		dst, err = zstdDecoder.DecodeAll(data, dst[:0:raw])
	default:
		return nil, errCodec
	}
	if err != nil {
		return nil, err
	}
	if len(dst) != raw {
		return nil, errUnpacked
	}
	return dst, nil
}
