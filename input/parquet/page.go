package parquet

import (
	"encoding/binary"
	"errors"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
)

var errLevelsCut = errors.New("the levels are truncated")

// dataPage makes a page of its bytes, unpacked.
func (p *pager) dataPage(h pageHeader, b []byte) (file.Page, error) {
	if !p.leaf.encodes(h.encoding) {
		return nil, unsupported("the encoding %s of %s", parquet.Encoding(h.encoding), parquet.Type(p.leaf.physical))
	}
	levels, err := p.levels(h, b)
	if err != nil {
		return nil, err
	}
	switch h.encoding {
	case encodingDelta, encodingDeltaLength, encodingDeltaBytes:
		if b, err = p.undelta(h, b, levels); err != nil {
			return nil, err
		}
		h.encoding = encodingPlain
	case encodingDictionary, encodingPlainDictionary:
		if levels < len(b) && b[levels] > 32 {
			return nil, errors.New("its indexes would have more than 32 bits")
		}
	}
	buffer, encoding, n := memory.NewBufferBytes(b), parquet.Encoding(h.encoding), int32(len(b))
	if h.kind == pageDataV2 {
		return file.NewDataPageV2(buffer, int32(h.values), 0, int32(h.rows), encoding, int32(h.defSize), int32(h.repSize), n, false), nil
	}
	return file.NewDataPageV1(buffer, int32(h.values), encoding, parquet.Encodings.RLE, parquet.Encodings.RLE, n), nil
}

// levels returns the size of the levels that b begins with.
func (p *pager) levels(h pageHeader, b []byte) (n int, err error) {
	if h.kind == pageDataV2 {
		return int(h.defSize + h.repSize), nil
	}
	if n, err = level(b, n, p.leaf.rep, h.repLevels); err != nil {
		return 0, err
	}
	return level(b, n, p.leaf.def, h.defLevels)
}

// level returns where the levels at n end, the greatest of which is most.
func level(b []byte, n, most int, encoding int64) (int, error) {
	if most == 0 {
		return n, nil // there are none
	}
	if encoding != encodingRLE {
		return 0, unsupported("the encoding %s of levels", parquet.Encoding(encoding))
	}
	if len(b)-n < 4 {
		return 0, errLevelsCut
	}
	size := int64(binary.LittleEndian.Uint32(b[n:]))
	if size > int64(len(b)-n-4) {
		return 0, errLevelsCut
	}
	return n + 4 + int(size), nil
}

// undelta returns the page as it were with the encoding PLAIN.
func (p *pager) undelta(h pageHeader, b []byte, levels int) ([]byte, error) {
	out, err := p.grow(p.plain[:0], int64(levels))
	if err != nil {
		return nil, err
	}
	out, b = append(out, b[:levels]...), b[levels:]
	switch {
	case h.encoding == encodingDelta:
		out, err = p.plainIntegers(out, b, h.values, int(p.leaf.plainSize()))
	case p.leaf.physical == physicalFixed:
		out, err = p.plainBytes(out, b, h.values, p.leaf.length, true)
	default:
		out, err = p.plainBytes(out, b, h.values, 0, h.encoding == encodingDeltaBytes)
	}
	if err == nil {
		p.plain = out
	}
	return out, err
}

// grow returns b with capacity for n more bytes.
func (p *pager) grow(b []byte, n int64) ([]byte, error) {
	if int64(len(b))+n > maxPage {
		return nil, errLarge
	}
	room, err := p.shared.room(b, int64(len(b))+n)
	if err != nil {
		return nil, err
	}
	copy(room, b)
	return room[:len(b)], nil
}
