package parquet

import (
	"encoding/binary"
	"hash/crc32"
	"math/bits"
)

// A thriftWriter writes Thrift's compact protocol.
type thriftWriter struct {
	b    []byte
	last []int // id of the previous field, for each open struct
}

func (w *thriftWriter) field(id int, kind byte) {
	if len(w.last) == 0 {
		w.last = []int{0}
	}
	last := &w.last[len(w.last)-1]
	if id-*last < 16 {
		w.b = append(w.b, byte(id-*last)<<4|kind)
	} else {
		w.b = binary.AppendVarint(append(w.b, kind), int64(id))
	}
	*last = id
}

func (w *thriftWriter) number(id int, kind byte, n int64) {
	w.field(id, kind)
	w.b = binary.AppendVarint(w.b, n)
}

func (w *thriftWriter) bytes(id int, b string) {
	w.field(id, thriftBinary)
	w.b = append(binary.AppendUvarint(w.b, uint64(len(b))), b...)
}

func (w *thriftWriter) flag(id int, v bool) {
	if v {
		w.field(id, thriftTrue)
	} else {
		w.field(id, thriftFalse)
	}
}

// structure writes a struct: a field's, or with id 0 an element of a list.
func (w *thriftWriter) structure(id int, body func()) {
	if id > 0 {
		w.field(id, thriftStruct)
	}
	w.last = append(w.last, 0)
	body()
	w.b = append(w.b, thriftStop)
	w.last = w.last[:len(w.last)-1]
}

func (w *thriftWriter) list(id int, kind byte, n int, element func(i int)) {
	w.field(id, thriftList)
	w.b = binary.AppendUvarint(append(w.b, 0xf0|kind), uint64(n))
	for i := range n {
		element(i)
	}
}

// testPage is a page to be written.
type testPage struct {
	header pageHeader
	body   []byte
}

// bytes returns the page with its header. Sizes that are not set in the header are those of the body.
func (p testPage) bytes() []byte {
	h := p.header
	if h.compressed == 0 {
		h.compressed = int64(len(p.body))
	}
	if h.uncompressed == 0 {
		h.uncompressed = int64(len(p.body))
	}
	var w thriftWriter
	w.number(1, thriftI32, h.kind)
	w.number(2, thriftI32, h.uncompressed)
	w.number(3, thriftI32, h.compressed)
	if h.hasCRC {
		w.number(fieldCRC, thriftI32, int64(int32(crc32.ChecksumIEEE(p.body)^h.crc)))
	}
	switch h.kind {
	case pageData:
		w.structure(5, func() {
			w.number(1, thriftI32, h.values)
			w.number(2, thriftI32, h.encoding)
			w.number(3, thriftI32, encodingRLE+h.defLevels)
			w.number(4, thriftI32, encodingRLE)
		})
	case pageDictionary:
		w.structure(7, func() {
			w.number(1, thriftI32, h.values)
			w.number(2, thriftI32, h.encoding)
		})
	case pageDataV2:
		w.structure(8, func() {
			w.number(1, thriftI32, h.values)
			w.number(2, thriftI32, 0)
			w.number(3, thriftI32, h.values)
			w.number(4, thriftI32, h.encoding)
			w.number(5, thriftI32, h.defSize)
			w.number(6, thriftI32, h.repSize)
			w.flag(7, !h.valuesUncompressed)
		})
	}
	return append(append(w.b, thriftStop), p.body...)
}

// A testColumn is a column of a file with one row group.
type testColumn struct {
	codec  int64
	values int64
	pages  []testPage
	behind []byte       // the pages, in the chunk
	change func(*chunk) // changes the chunk's metadata
}

// testFile returns a file. The first field is the root.
func testFile(rows int64, fields []schemaElement, columns []testColumn) []byte {
	b := []byte(Magic)
	var chunks []chunk
	next := 0
	for _, f := range fields {
		if !f.leaf || f.children > 0 {
			continue
		}
		column := columns[next]
		next++
		c := chunk{set: true, physical: f.physical, codec: column.codec, values: column.values, dataAt: int64(len(b))}
		for _, p := range column.pages {
			b = append(b, p.bytes()...)
		}
		b = append(b, column.behind...)
		c.compressed = int64(len(b)) - c.dataAt
		if column.change != nil {
			column.change(&c)
		}
		chunks = append(chunks, c)
	}
	footer := testFooter(rows, fields, chunks)
	b = binary.LittleEndian.AppendUint32(append(b, footer...), uint32(len(footer)))
	return append(b, Magic...)
}

func testFooter(rows int64, fields []schemaElement, chunks []chunk) []byte {
	var w thriftWriter
	w.number(1, thriftI32, 1)
	w.list(2, thriftStruct, len(fields), func(i int) { w.structure(0, func() { w.element(fields[i]) }) })
	w.number(3, thriftI64, rows)
	w.list(4, thriftStruct, 1, func(int) {
		w.structure(0, func() {
			w.list(1, thriftStruct, len(chunks), func(i int) { w.structure(0, func() { w.chunk(chunks[i]) }) })
			w.number(3, thriftI64, rows)
			w.number(5, thriftI64, 4)
		})
	})
	return append(w.b, thriftStop)
}

func (w *thriftWriter) element(f schemaElement) {
	if f.leaf {
		w.number(1, thriftI32, f.physical)
	}
	w.number(2, thriftI32, f.length)
	w.number(3, thriftI32, f.repetition)
	w.bytes(4, f.name)
	if f.children > 0 || !f.leaf {
		w.number(5, thriftI32, f.children)
	}
	if t := f.logical; t.id < 0 { // a converted type
		w.number(6, thriftI32, int64(-t.id))
		w.number(7, thriftI32, t.scale)
		w.number(8, thriftI32, 12)
	} else if t.id != 0 {
		w.structure(10, func() {
			w.structure(t.id, func() {
				switch t.id {
				case logicalDecimal:
					w.number(1, thriftI32, t.scale)
					w.number(2, thriftI32, 12)
				case logicalInteger:
					w.field(1, thriftByte)
					w.b = append(w.b, byte(t.width))
					w.flag(2, t.signed)
				case logicalTime, logicalTimestamp:
					w.flag(1, t.utc)
					w.structure(2, func() { w.structure(t.unit, func() {}) })
				}
			})
		})
	}
}

func (w *thriftWriter) chunk(c chunk) {
	if c.elsewhere {
		w.bytes(1, "another file")
	}
	if c.set {
		w.structure(3, func() {
			w.number(1, thriftI32, c.physical)
			w.number(4, thriftI32, c.codec)
			w.number(5, thriftI64, c.values)
			w.number(7, thriftI64, c.compressed)
			w.number(9, thriftI64, c.dataAt)
		})
	}
	if c.encrypted {
		w.structure(8, func() {})
	}
}

// levelled are the levels and values of a column, as they are put into pages.
type levelled struct {
	maxRep, maxDef int
	reps, defs     []int
	values         [][]byte // PLAIN, of those that are there
}

func (l *levelled) add(rep, def int, value []byte) {
	l.reps, l.defs = append(l.reps, rep), append(l.defs, def)
	if def == l.maxDef {
		l.values = append(l.values, value)
	}
}

// column returns pages of at most that many levels each.
func (l *levelled) column(most int) testColumn {
	c := testColumn{values: int64(len(l.defs))}
	reps, defs, values := l.reps, l.defs, l.values
	for len(defs) > 0 {
		n := min(most, len(defs))
		var body []byte
		for _, levels := range []struct {
			max int
			of  []int
		}{{l.maxRep, reps[:n]}, {l.maxDef, defs[:n]}} {
			if levels.max > 0 {
				rle := testRLE(levels.max, levels.of)
				body = append(binary.LittleEndian.AppendUint32(body, uint32(len(rle))), rle...)
			}
		}
		for _, def := range defs[:n] {
			if def == l.maxDef {
				body, values = append(body, values[0]...), values[1:]
			}
		}
		c.pages = append(c.pages, testPage{pageHeader{kind: pageData, values: int64(n), hasCRC: true}, body})
		reps, defs = reps[n:], defs[n:]
	}
	return c
}

// testRLE returns numbers up to most, each as a run of its own.
func testRLE(most int, numbers []int) (b []byte) {
	for _, n := range numbers {
		b = append(b, 1<<1)
		for i := range (bits.Len(uint(most)) + 7) / 8 {
			b = append(b, byte(n>>(8*i)))
		}
	}
	return b
}

// Values as PLAIN has them.

func plain32(n int32) []byte { return binary.LittleEndian.AppendUint32(nil, uint32(n)) }

func plain64(n int64) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(n)) }

func plainText(s string) []byte { return append(plain32(int32(len(s))), s...) }

// Fields of a schema.

func testGroup(name string, repetition, children int64, logical int) schemaElement {
	return schemaElement{name: name, repetition: repetition, children: children, logical: logicalType{id: logical}}
}

func testLeaf(name string, repetition, physical int64, logical logicalType) schemaElement {
	return schemaElement{name: name, leaf: true, repetition: repetition, physical: physical, logical: logical}
}
