package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"strings"
)

// The encodings of parquet.thrift.
const (
	encodingPlain           = 0
	encodingPlainDictionary = 2
	encodingRLE             = 3
	encodingBitPacked       = 4
	encodingDelta           = 5
	encodingDeltaLength     = 6
	encodingDeltaBytes      = 7
	encodingDictionary      = 8
	encodingSplit           = 9
)

// encodingNames are the names of parquet.thrift.
var encodingNames = [...]string{"PLAIN", "GROUP_VAR_INT", "PLAIN_DICTIONARY", "RLE", "BIT_PACKED", "DELTA_BINARY_PACKED",
	"DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY", "RLE_DICTIONARY", "BYTE_STREAM_SPLIT"}

func encodingName(encoding int64) string {
	if 0 <= encoding && encoding < int64(len(encodingNames)) {
		return encodingNames[encoding]
	}
	return fmt.Sprint("of number ", encoding)
}

// dataPage makes a page of its bytes, unpacked. A page V1 has the sizes of its levels in front of these, a page V2 in its header.
func (p *pager) dataPage(h pageHeader, b []byte) (d page, err error) {
	if !p.leaf.encodes(h.encoding) {
		return page{}, unsupported("the encoding %s of %s", encodingName(h.encoding), strings.ToUpper(physicalNames[p.leaf.physical]))
	}
	var reps, defs []byte
	if h.kind == pageDataV2 {
		reps, defs, b = b[:h.repSize], b[h.repSize:h.repSize+h.defSize], b[h.repSize+h.defSize:]
	} else {
		if reps, b, err = levelsV1(b, p.leaf.rep, h.repLevels); err != nil {
			return page{}, err
		}
		if defs, b, err = levelsV1(b, p.leaf.def, h.defLevels); err != nil {
			return page{}, err
		}
	}
	d.left = h.values
	d.reps = hybrid{b: reps, width: byte(bits.Len(uint(p.leaf.rep)))}
	d.defs = hybrid{b: defs, width: byte(bits.Len(uint(p.leaf.def)))}
	return d, p.setValues(&d, h, b)
}

// levelsV1 returns the levels up to most that b begins with, and what follows.
func levelsV1(b []byte, most int, encoding int64) (levels, rest []byte, err error) {
	switch {
	case most == 0:
		return nil, b, nil // there are none
	case encoding != encodingRLE:
		return nil, nil, unsupported("the encoding %s of levels", encodingName(encoding))
	}
	levels, rest, ok := sized32(b)
	if !ok {
		return nil, nil, errLevelsCut
	}
	return levels, rest, nil
}

// sized32 returns what is behind its size in b, and what follows.
func sized32(b []byte) (content, rest []byte, ok bool) {
	if len(b) < 4 {
		return nil, nil, false
	}
	n, b := uint64(binary.LittleEndian.Uint32(b)), b[4:]
	if n > uint64(len(b)) {
		return nil, nil, false
	}
	return b[:n], b[n:], true
}

// setValues sets the values of a page, which are b: as PLAIN, or as indexes of a dictionary.
func (p *pager) setValues(d *page, h pageHeader, b []byte) (err error) {
	switch h.encoding {
	case encodingPlain:
		if p.leaf.physical == physicalBoolean {
			d.dictionary, d.indexes = booleans, bitPacked(b)
			return nil
		}
		d.plain = b
	case encodingRLE:
		runs, _, ok := sized32(b)
		if !ok {
			return errIndexesCut
		}
		d.dictionary, d.indexes = booleans, hybrid{b: runs, width: 1}
	case encodingDictionary, encodingPlainDictionary:
		if p.dictionary == nil {
			return errors.New("a dictionary page must be before it")
		}
		d.dictionary = p.dictionary
		if len(b) == 0 {
			return nil // a page of nulls
		}
		if b[0] > 32 {
			return errors.New("its indexes would have more than 32 bits")
		}
		d.indexes = hybrid{b: b[1:], width: b[0]}
	default:
		d.plain, err = p.toPlain(h, b)
	}
	return err
}

func (p *pager) toPlain(h pageHeader, b []byte) (out []byte, err error) {
	out = p.plain[:0]
	switch {
	case h.encoding == encodingSplit:
		out, err = p.plainSplit(out, b, h.values, int(p.leaf.plainSize()))
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

// plainSplit decodes BYTE_STREAM_SPLIT, which has the first bytes of all values, then the second ones, and so on. It appends
// the values to dst.
func (p *pager) plainSplit(dst, b []byte, most int64, size int) (_ []byte, err error) {
	values := len(b) / size
	if len(b)%size != 0 || int64(values) > most {
		return nil, fmt.Errorf("%d bytes cannot be split into up to %d values of %d", len(b), most, size)
	}
	if dst, err = p.grow(dst, int64(len(b))); err != nil {
		return nil, err
	}
	for i := range values {
		for at := i; at < len(b); at += values {
			dst = append(dst, b[at])
		}
	}
	return dst, nil
}

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
