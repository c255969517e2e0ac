package parquet

import (
	"errors"
	"fmt"
	"strings"

	"sequins/internal/render"
)

// What a node is, to those who read a row.
type kind uint8

const (
	leaf   kind = iota // a column
	record             // a group
	list               // a group around a repeated element
	dict               // a group around repeated entries, each a scalar key and a value: a MAP
)

// A node is a field of the schema.
//
// The levels say which of the repeated and optional fields on the way to a value are there: a value of a
// definition level under a node's says that the node is null or, if it is repeated, empty; one of a
// node's repetition level continues it.
type node struct {
	name     string
	kind     kind
	repeated bool
	def, rep int
	children []*node
	// first is the index of the first column below the node, columns their number.
	first, columns int
	parent         *node

	// Of a leaf:
	physical int64
	length   int64 // of the values of a FIXED_LEN_BYTE_ARRAY
	cost     int64 // what a value costs beside its bytes
	convert  func(*value) any
}

// physicalNames are the names of the types of parquet.thrift.
var physicalNames = [...]string{"boolean", "int32", "int64", "int96", "float", "double", "byte_array", "fixed_len_byte_array"}

// maxDepth is how deep fields can be nested.
const maxDepth = 100

// valueCost is about what a value takes while a row is put together. The names of the fields that it is in are
// added, and the digits of a decimal, as these are rendered for each.
const valueCost = 128

// The types of parquet.thrift.
const (
	physicalBoolean = 0
	physicalInt32   = 1
	physicalInt64   = 2
	physicalInt96   = 3
	physicalFloat   = 4
	physicalDouble  = 5
	physicalBytes   = 6
	physicalFixed   = 7
)

// The repetition types of parquet.thrift; the other is REQUIRED.
const (
	optional = 1
	repeated = 2
)

// A tree makes nodes of the schema, which is a list of fields, each before its children.
type tree struct {
	fields []schemaElement
	next   int     // field
	leaves []*node // so far

	calendar *calendar // of dates and timestamps
}

var errSchema = errors.New("the schema is not a tree")

func newTree(fields []schemaElement, c *calendar) (root *node, leaves []*node, err error) {
	t := &tree{fields: fields, calendar: c}
	if root, err = t.build(nil, 0); err != nil {
		return nil, nil, err
	}
	if t.next != len(fields) {
		return nil, nil, errSchema
	}
	if root.kind == leaf || root.columns == 0 {
		return nil, nil, errors.New("the file has no columns")
	}
	root.kind = record
	return root, t.leaves, nil
}

func (t *tree) build(parent *node, depth int) (*node, error) {
	if t.next >= len(t.fields) {
		return nil, errSchema
	}
	if depth > maxDepth {
		return nil, unsupported("fields are nested more than %d levels deep", maxDepth)
	}
	f := &t.fields[t.next]
	t.next++
	n := &node{name: f.name, first: len(t.leaves), parent: parent}
	if parent != nil {
		n.place(parent, f.repetition)
	}
	if f.leaf {
		t.leaves = append(t.leaves, n)
		return n, n.makeLeaf(f, t.calendar)
	}
	if f.children < 0 || f.children > int64(len(t.fields)) {
		return nil, errSchema
	}
	for range f.children {
		child, err := t.build(n, depth+1)
		if err != nil {
			return nil, err
		}
		if child.columns > 0 { // a group without fields has nothing to read
			n.children = append(n.children, child)
		}
	}
	n.columns = len(t.leaves) - n.first
	n.kind = n.groupKind(f)
	return n, nil
}

func (n *node) makeLeaf(f *schemaElement, c *calendar) error {
	n.columns, n.physical, n.length = 1, f.physical, f.length
	n.cost = valueCost
	if f.logical.isDecimal() {
		n.cost += f.logical.scale
	}
	for p := n; p != nil; p = p.parent {
		n.cost += int64(len(p.name))
	}
	if n.physical < physicalBoolean || n.physical > physicalFixed {
		return fmt.Errorf("column %s: %w", n.path(), unsupported("the type of number %d", n.physical))
	}
	if n.physical == physicalFixed && n.length <= 0 {
		return fmt.Errorf("column %s: its values would have %d bytes", n.path(), n.length)
	}
	n.convert = converter(f, c)
	return nil
}

// plainSize returns how many bytes a value has at least with the encoding PLAIN; 0 for a boolean.
func (n *node) plainSize() int64 {
	switch n.physical {
	case physicalBoolean:
		return 0
	case physicalInt64, physicalDouble:
		return 8
	case physicalInt96:
		return 12
	case physicalFixed:
		return n.length
	}
	return 4
}

// encodes reports whether a data page of the column can have an encoding.
func (n *node) encodes(encoding int64) bool {
	switch encoding {
	case encodingPlain:
		return true
	case encodingPlainDictionary, encodingDictionary:
		return n.physical != physicalBoolean
	case encodingRLE:
		return n.physical == physicalBoolean
	case encodingDelta:
		return n.physical == physicalInt32 || n.physical == physicalInt64
	case encodingDeltaLength:
		return n.physical == physicalBytes
	case encodingDeltaBytes:
		return n.physical == physicalBytes || n.physical == physicalFixed
	case encodingSplit:
		return n.physical != physicalBoolean && n.physical != physicalInt96 && n.physical != physicalBytes
	}
	return false
}

// path returns the names on the way to a field, for errors.
func (n *node) path() string {
	const most = 200
	var names []string
	for p := n; p.parent != nil; p = p.parent {
		names = append([]string{p.name}, names...)
	}
	path := strings.Join(names, ".")
	return path[:min(len(path), most)]
}

func (n *node) place(parent *node, repetition int64) {
	n.def, n.rep = parent.def, parent.rep
	switch repetition {
	case optional:
		n.def++
	case repeated:
		n.def++
		n.rep++
		n.repeated = true
	}
}

// groupKind returns whether a group is a list or a map. One that is annotated but not built like one is a
// record. A map whose entries are not a scalar key and a value cannot be an object: it is a list of its entries, and of
// its keys if there are no values.
func (n *node) groupKind(f *schemaElement) kind {
	if len(n.children) != 1 || !n.children[0].repeated {
		return record
	}
	entry := n.children[0]
	switch {
	case f.logical.id != logicalList && f.logical.id != logicalMap:
		return record
	case f.logical.id == logicalMap && entry.kind == record && len(entry.children) == 2 && entry.children[0].scalar():
		return dict
	}
	return list
}

// element returns what a list holds: the repeated field itself in files of old writers, its only child in
// others. The rules are those of the format's LogicalTypes.md.
func (n *node) element() (e *node, itself bool) {
	e = n.children[0]
	if e.kind == leaf || len(e.children) != 1 || e.children[0].repeated || e.name == "array" || e.name == n.name+"_tuple" {
		return e, true
	}
	return e.children[0], false
}

func (n *node) Named(name string) (all []render.Name) {
	if n.kind != record || n.repeated {
		return nil
	}
	for _, c := range n.children {
		if c.name == name {
			all = append(all, c)
		}
	}
	return all
}

// duplicate returns a field below n that another one of the same record shares its name with; nil if there is none.
func (n *node) duplicate() *node {
	if n.kind == dict {
		return n.children[0].children[1].duplicate() // the names of the entry's own fields are not served
	}
	named := make(map[string]bool)
	for _, c := range n.children {
		if named[c.name] {
			return c
		}
		named[c.name] = true
		if d := c.duplicate(); d != nil {
			return d
		}
	}
	return nil
}

func (n *node) scalar() bool { return n.kind == leaf && !n.repeated }
