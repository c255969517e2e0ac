package blocks

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"

	"sequins/blocks/internal/decode"
)

// Properties describe a block. Everything but Compression, BlockSize and MadeFrom depends on the records
// alone; ContentHash does not depend on Compression, so that nodes can compare what they hold.
type Properties struct {
	Partition   int    `json:"partition"`
	Partitions  int    `json:"partitions"`
	Records     int64  `json:"records"`
	RawBytes    int64  `json:"raw_bytes"` // of keys and values
	Pages       int    `json:"pages"`
	FirstKey    []byte `json:"first_key"` // base64 in JSON
	LastKey     []byte `json:"last_key"`
	Compression string `json:"compression"`
	BlockSize   int    `json:"block_size"`
	ContentHash string `json:"content_hash"`        // XXH64 of the CRC-32C of all payloads before packing, hex
	MaxValue    int64  `json:"max_value"`           // the size of the largest value, in bytes
	MadeFrom    string `json:"made_from,omitempty"` // see Writer.SetMadeFrom
}

// maxCount limits the records and the bytes of a block, so that sums over all partitions cannot overflow.
const maxCount = 1 << 42

func parseProperties(b []byte) (p Properties, err error) {
	if err := json.Unmarshal(b, &p); err != nil {
		return p, fmt.Errorf("properties: %w", err)
	}
	if min(p.Records, p.RawBytes, p.MaxValue, int64(p.Pages)) < 0 || max(p.Records, p.RawBytes, p.MaxValue) > maxCount || int64(p.Pages) > p.Records || p.Records > 0 && p.Pages == 0 {
		return p, errors.New("properties: impossible counts")
	}
	return p, nil
}

// section is a part of the file behind the pages, with its checksum.
type section struct {
	offset, length int64
	crc            uint32
}

func (s *section) update(b []byte) {
	s.length += int64(len(b))
	s.crc = crc32.Update(s.crc, castagnoli, b)
}

// footer is the fixed end of a block.
type footer struct {
	index, filter, symbols, properties section
	hash                               [hashSize]byte // XXH3 of the file before the footer
}

func (f *footer) sections() []*section {
	return []*section{&f.index, &f.filter, &f.symbols, &f.properties}
}

func (f *footer) appendTo(dst []byte) []byte {
	le := binary.LittleEndian
	start := len(dst)
	for _, s := range f.sections() {
		dst = le.AppendUint64(dst, uint64(s.offset))
		dst = le.AppendUint64(dst, uint64(s.length))
	}
	for _, s := range f.sections() {
		dst = le.AppendUint32(dst, s.crc)
	}
	dst = append(dst, f.hash[:]...)
	dst = le.AppendUint32(dst, formatVersion)
	dst = le.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli))
	return append(dst, magic...)
}

// parseFooter checks that b, the last footerSize bytes of a file of size bytes, is a footer whose
// sections lie one behind the other up to it.
func parseFooter(b []byte, size int64) (footer, error) {
	var f footer
	d := decode.New(b)
	for _, s := range f.sections() {
		s.offset, s.length = int64(d.U64()), int64(d.U64())
	}
	for _, s := range f.sections() {
		s.crc = d.U32()
	}
	copy(f.hash[:], d.Bytes(hashSize))
	version, crc := d.U32(), d.U32()
	if string(d.Rest()) != magic {
		return f, errors.New("not a sequins block: the magic number at its end is missing")
	}
	if crc != crc32.Checksum(b[:footerSize-len(magic)-4], castagnoli) {
		return f, errors.New("footer: checksum mismatch")
	}
	if version != formatVersion {
		return f, fmt.Errorf("format version %d: this build reads %d", version, formatVersion)
	}
	end := f.index.offset
	for _, s := range f.sections() {
		if s.offset < 0 || s.length < 0 || s.offset != end || s.length > size-end {
			return f, errors.New("footer: sections do not follow each other")
		}
		end += s.length
	}
	if end != size-footerSize {
		return f, errors.New("footer: sections do not end at the footer")
	}
	return f, nil
}
