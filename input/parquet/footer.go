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

// fieldType is the field of SchemaElement that has the physical type.
const fieldType = 1

var errFooter = errors.New("the footer is malformed")

// parseFooter reads a FileMetaData. What it allocates is bounded by the constants above and by a small
// multiple of len(b).
func parseFooter(b []byte) (f footer, err error) {
	r := thriftReader{b: b}
	var version int64
	var creator []byte
	seen := r.read(
		field{1, &version},
		field{2, structs{maxFields, "fields in the schema", func() { f.fields = append(f.fields, r.schemaElement()) }}},
		field{3, &f.rows},
		field{4, structs{maxGroups, "row groups", func() { f.groups = append(f.groups, r.raw()) }}},
		field{5, structs{maxNotes, "pairs of key and value", func() { r.keyValue(&f.spark) }}},
		field{6, &creator},
		field{8, r.present(&f.encrypted)},
	)
	f.alwaysCompressed = bytes.HasPrefix(creator, []byte("parquet-cpp version 1."))
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

// present sets found if there is a struct, whatever its fields.
func (r *thriftReader) present(found *bool) structure {
	return func() {
		*found = true
		r.read()
	}
}

func (r *thriftReader) keyValue(m *sparkMetadata) {
	var key, value []byte
	r.read(field{1, &key}, field{2, &value})
	if len(key)+len(value) < 200 { // longer ones are not Spark's
		m.set(string(key), string(value))
	}
}

func (r *thriftReader) schemaElement() (e schemaElement) {
	var scale int64
	var name []byte
	converted := int64(-1)
	seen := r.read(
		field{fieldType, &e.physical},
		field{2, &e.length},
		field{3, &e.repetition},
		field{4, &name},
		field{5, &e.children},
		field{6, &converted},
		field{7, &scale},
		field{10, structure(func() { r.logicalType(&e.logical) })},
	)
	if len(name) > maxName {
		r.fail(errThrift)
		return e
	}
	e.name = string(name)
	r.require(seen, "a field of the schema", 4)
	e.leaf = seen&(1<<fieldType) != 0 && e.children == 0 // some writers give the root a type
	e.logical = e.logical.orConverted(converted, scale)
	return e
}

// parseRowGroup reads a RowGroup, which must have the given number of columns.
func parseRowGroup(b []byte, columns int) (g rowGroup, err error) {
	r := thriftReader{b: b}
	g.chunks = make([]chunk, 0, min(columns, len(b)))
	seen := r.read(
		field{1, structs{columns, "", func() { g.chunks = append(g.chunks, r.chunk()) }}},
		field{3, &g.rows},
		field{5, &g.offset},
	)
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
	var path []byte
	r.read(
		field{1, &path},
		field{3, structure(func() {
			c.set = true
			seen := r.read(field{1, &c.physical}, field{4, &c.codec}, field{5, &c.values}, field{7, &c.compressed}, field{9, &c.dataAt}, field{11, &c.dictionary})
			r.require(seen, "a column", 1, 4, 5, 7, 9)
		})},
		field{8, r.present(&c.encrypted)},
	)
	c.elsewhere = len(path) > 0
	return c
}
