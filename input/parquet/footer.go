package parquet

import (
	"bytes"
	"errors"
	"fmt"
)

// Limits of a footer.
const (
	maxFields = 1 << 16 // fields of the schema, groups included
	maxGroups = 1 << 20 // row groups
	maxName   = 1 << 16 // bytes of a field's name
	maxNotes  = 1 << 20 // pairs of key and value
)

// footer contains the fields of parquet.thrift's FileMetaData that are used.
type footer struct {
	fields    []schemaElement
	rows      int64
	groups    [][]byte // a RowGroup each, in Thrift; parsed when it is read
	encrypted bool     // the file has encrypted columns
	spark     sparkMetadata
	// alwaysCompressed: Arrow before 3.0, which called itself parquet-cpp 1, compressed the values of pages V2 and noted
	// that they are not.
	alwaysCompressed bool
}

// A schemaElement is a field of the schema. In the file, the fields are a list, each before its children.
type schemaElement struct {
	name       string
	leaf       bool // it is a column, and no group
	physical   int64
	length     int64 // of the values of a FIXED_LEN_BYTE_ARRAY
	repetition int64
	children   int64
	logical    logicalType
}

// A chunk is the part of a column that is in a row group: of ColumnChunk and ColumnMetaData what is needed.
type chunk struct {
	set                bool // it has metadata
	encrypted          bool
	elsewhere          bool // it is in another file
	physical           int64
	codec              int64
	values             int64
	compressed         int64
	dataAt, dictionary int64 // offsets of pages
}

// rowGroup contains the fields of RowGroup that are used.
type rowGroup struct {
	chunks []chunk
	rows   int64
	offset int64
}

var errFooter = errors.New("the footer is malformed")

// parseFooter reads a FileMetaData. What it allocates is bounded by the constants above and by a small
// multiple of len(b).
func parseFooter(b []byte) (f footer, err error) {
	r := thriftReader{b: b}
	var version int64
	seen := r.fields(func(id int, kind byte) bool {
		switch {
		case id == 1:
			return r.number(kind, &version)
		case id == 2 && kind == thriftList:
			r.structs(maxFields, "fields in the schema", func() { f.fields = append(f.fields, r.schemaElement()) })
		case id == 3:
			return r.number(kind, &f.rows)
		case id == 4 && kind == thriftList:
			r.structs(maxGroups, "row groups", func() { f.groups = append(f.groups, r.raw()) })
		case id == 5 && kind == thriftList:
			r.structs(maxNotes, "pairs of key and value", func() { r.keyValue(f.spark.set) })
		case id == 6 && kind == thriftBinary:
			f.alwaysCompressed = bytes.HasPrefix(r.binary(), []byte("parquet-cpp version 1."))
		case id == 8 && kind == thriftStruct:
			f.encrypted = true
			r.skip(kind, maxThriftDepth)
		default:
			return false
		}
		return true
	})
	r.require(seen, "the file", 1, 2, 3, 4)
	if len(r.b) > 0 && !f.encrypted { // behind an encrypted footer is its signature
		r.fail(fmt.Errorf("%d bytes are left behind it", len(r.b)))
	}
	switch {
	case errors.Is(r.err, errUnsupported):
		return f, r.err
	case r.err != nil:
		return f, fmt.Errorf("%w: %w", errFooter, r.err)
	}
	return f, nil
}

// keyValue reads a KeyValue.
func (r *thriftReader) keyValue(set func(key, value string)) {
	var pair [2][]byte
	r.fields(func(id int, kind byte) bool {
		if (id != 1 && id != 2) || kind != thriftBinary {
			return false
		}
		pair[id-1] = r.binary()
		return true
	})
	if len(pair[0])+len(pair[1]) < 200 { // longer ones are not for set
		set(string(pair[0]), string(pair[1]))
	}
}

func (r *thriftReader) schemaElement() (e schemaElement) {
	var scale, precision int64
	converted, typed := int64(-1), false
	seen := r.fields(func(id int, kind byte) bool {
		switch id {
		case 1:
			typed = r.number(kind, &e.physical)
			return typed
		case 2:
			return r.number(kind, &e.length)
		case 3:
			return r.number(kind, &e.repetition)
		case 4:
			if kind != thriftBinary {
				return false
			}
			name := r.binary()
			if len(name) > maxName {
				r.fail(errThrift)
				return true
			}
			e.name = string(name)
			return true
		case 5:
			return r.number(kind, &e.children)
		case 6:
			return r.number(kind, &converted)
		case 7:
			return r.number(kind, &scale)
		case 8:
			return r.number(kind, &precision)
		case 10:
			if kind != thriftStruct {
				return false
			}
			r.fields(func(id int, kind byte) bool {
				e.logical.id = id
				if kind == thriftStruct {
					r.logical(&e.logical)
				}
				return kind == thriftStruct
			})
			return true
		}
		return false
	})
	r.require(seen, "a field of the schema", 4)
	e.leaf = typed && e.children == 0 // some writers give the root a type
	e.logical = e.logical.orConverted(converted, scale, precision)
	return e
}

// parseRowGroup reads a RowGroup, which must have the given number of columns.
func parseRowGroup(b []byte, columns int) (g rowGroup, err error) {
	r := thriftReader{b: b}
	seen := r.fields(func(id int, kind byte) bool {
		switch {
		case id == 1 && kind == thriftList:
			g.chunks = make([]chunk, 0, min(columns, len(r.b)))
			r.structs(columns, "", func() { g.chunks = append(g.chunks, r.chunk()) })
		case id == 3:
			return r.number(kind, &g.rows)
		case id == 5:
			return r.number(kind, &g.offset)
		default:
			return false
		}
		return true
	})
	r.require(seen, "a row group", 1, 3)
	switch {
	case r.err != nil:
		return g, fmt.Errorf("%w: %w", errFooter, r.err)
	case len(g.chunks) != columns:
		return g, fmt.Errorf("%w: a row group has %d columns of %d", errFooter, len(g.chunks), columns)
	case g.rows < 0:
		return g, fmt.Errorf("%w: a row group has %d rows", errFooter, g.rows)
	}
	return g, nil
}

func (r *thriftReader) chunk() (c chunk) {
	r.fields(func(id int, kind byte) bool {
		switch {
		case id == 1 && kind == thriftBinary:
			c.elsewhere = len(r.binary()) > 0
		case id == 3 && kind == thriftStruct:
			c.set = true
			r.columnMetaData(&c)
		case id == 8 && kind == thriftStruct:
			c.encrypted = true
			r.skip(kind, maxThriftDepth)
		default:
			return false
		}
		return true
	})
	return c
}

func (r *thriftReader) columnMetaData(c *chunk) {
	seen := r.fields(func(id int, kind byte) bool {
		switch id {
		case 1:
			return r.number(kind, &c.physical)
		case 4:
			return r.number(kind, &c.codec)
		case 5:
			return r.number(kind, &c.values)
		case 7:
			return r.number(kind, &c.compressed)
		case 9:
			return r.number(kind, &c.dataAt)
		case 11:
			return r.number(kind, &c.dictionary)
		}
		return false
	})
	r.require(seen, "a column", 1, 4, 5, 7, 9)
}
