package blocks

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"slices"
	"unsafe"

	"sequins/blocks/internal/fsst"
	"sequins/blocks/internal/index"
)

const (
	// sampleSize is how many bytes of records symbols are chosen by.
	sampleSize = 16 << 10

	// samplePiece is how much is taken of a record at one place.
	samplePiece = 512

	// Each epoch of a block is epochGrowth times as long as the one before, up to lastEpoch.
	epochGrowth = 8
	lastEpoch   = 32 << 20
)

// firstEpoch is how many bytes of records the first epoch of a block has. Only tests change it.
var firstEpoch = 32 << 10

// coder encodes the pages of a block that is written. At the end of each epoch it chooses symbols for a sample of the epoch's
// records, and encodes by them from then on if they are better by a twentieth: keys ascend, and further on there can be other
// values. What is in a block depends on its records alone.
type coder struct {
	encoder *fsst.Encoder // nil while pages are stored as they are
	fresh   bool          // encoder has encoded no page
	section []byte        // the tables of pages so far, as they will stand in the file
	ends    []int

	sample        [][]byte
	sampled, seen int // bytes in this epoch: of the sample, and of all records
	epoch         int // bytes
}

// appendPage appends a payload as it is stored: encoded where that makes it smaller, with its trailer.
func (c *coder) appendPage(dst, payload []byte, ordinal uint32) []byte {
	start, codec := len(dst), None
	p, _ := parsePage(payload, nil, nil) // by its builder
	c.ends = c.ends[:0]
	end := 0
	for i := range p.n {
		record := p.bytes(i)
		end += len(record)
		c.ends = append(c.ends, end)
		for piece := range slices.Chunk(record, samplePiece) {
			c.seen += len(piece)
			if c.sampled*c.epoch <= c.seen*sampleSize { // the sample has the same part of everything
				c.sample = append(c.sample, slices.Clone(piece))
				c.sampled += len(piece)
			}
		}
	}
	if c.encoder != nil {
		codec = FSST
		if c.fresh {
			c.section, c.fresh = c.encoder.AppendTo(binary.LittleEndian.AppendUint32(c.section, ordinal)), false
		}
		dst = append(dst, payload[:p.start()]...)
		dst = c.encoder.AppendAll(dst, payload[p.start():], c.ends)
		for i, end := range c.ends[:p.n-1] {
			binary.LittleEndian.PutUint16(dst[start+2+p.n+2*i:], uint16(end))
		}
	}
	if codec == None || len(dst)-start >= len(payload) {
		codec = None
		dst = append(dst[:start], payload...)
	}
	dst = appendTrailer(dst, crc32.Checksum(dst[start:], castagnoli), len(payload), codec, ordinal)
	if c.seen >= c.epoch {
		c.endEpoch()
	}
	return dst
}

// endEpoch chooses symbols for the next pages.
func (c *coder) endEpoch() {
	encoder := fsst.Train(c.sample)
	if 20*c.sampleLength(encoder) < 19*c.sampleLength(c.encoder) {
		c.encoder, c.fresh = encoder, true
	}
	c.sample, c.sampled, c.seen = nil, 0, 0
	c.epoch = min(epochGrowth*c.epoch, lastEpoch)
}

// sampleLength is the length of the sample in bytes, encoded by e if that is not nil.
func (c *coder) sampleLength(e *fsst.Encoder) int {
	n := 0
	var buf []byte
	for _, record := range c.sample {
		if e == nil {
			n += len(record)
			continue
		}
		buf = e.AppendAll(buf[:0], record, []int{len(record)})
		n += len(buf)
	}
	return n
}

// appendValue is findRecord that appends what it finds to dst, and returns where the value begins there. If the records of the page
// are encoded, what it appends is the record decoded.
func appendValue(dst, stored, key []byte, mask uint64, symbols *fsst.Table) (out []byte, value int, found, absent bool) {
	if symbols == nil {
		start, end, absent := findRecord(stored, key, mask)
		return append(dst, stored[start:end]...), len(dst), end > 0, absent
	}
	head := unsafe.Pointer(unsafe.SliceData(stored))
	if len(stored) < fastPage+trailerSize || uint(load16(head, 0)-1) >= fastRecords {
		return dst, 0, false, false
	}
	p := page{payload: stored[:len(stored)-trailerSize], n: load16(head, 0)}
	start := len(dst)
	for ; mask != 0; mask &= mask - 1 {
		i := recordOf(mask)
		if i >= p.n {
			continue
		}
		out, err := symbols.Append(dst, p.bytes(i), maxRecord)
		if err != nil {
			return dst, 0, false, false
		}
		k, v, err := cutRecord(out[start:])
		if err != nil {
			return dst, 0, false, false
		}
		if string(k) == string(key) {
			return out, len(out) - len(v), true, false
		}
		dst = out[:start]
	}
	return dst, 0, false, true
}

// symbolTable has the symbols of the pages from first on, up to the first of the next table.
type symbolTable struct {
	first int
	table *fsst.Table
}

var errTables = errors.New("symbols: impossible tables")

// fewTables and one for each MiB of the file are more tables than a writer makes.
const fewTables = 8

// parseSymbols reads the tables of a block of size bytes.
func parseSymbols(b []byte, size int64) (tables []symbolTable, err error) {
	for len(b) > 0 {
		if len(b) < 4 || int64(len(tables)) >= fewTables+size>>20 {
			return nil, errTables
		}
		t := symbolTable{first: int(binary.LittleEndian.Uint32(b))}
		if len(tables) > 0 && t.first <= tables[len(tables)-1].first {
			return nil, errTables
		}
		if t.table, b, err = fsst.Parse(b[4:]); err != nil {
			return nil, err
		}
		tables = append(tables, t)
	}
	return tables, nil
}

// isSearched reports whether records are found in a page at l as it lies in the file: it is not packed as a whole.
func (r *Reader) isSearched(l index.Location) bool { return !l.Packed() || r.tables != nil }

// symbols returns the table of a page whose records are encoded; nil for any other.
func (r *Reader) symbols(page int, packed bool) *fsst.Table {
	if packed {
		for i := len(r.tables) - 1; i >= 0; i-- {
			if r.tables[i].first <= page {
				return r.tables[i].table
			}
		}
	}
	return nil
}
