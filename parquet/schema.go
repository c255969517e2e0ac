package parquet

import (
	"errors"
	"fmt"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"

	"sequins/internal/render"
)

// What a node is, to those who read a row.
type kind uint8

const (
	leaf   kind = iota // a column
	record             // a group
	list               // a group around a repeated element
	dict               // a group around repeated entries: a MAP
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
	// columns are those below the node: from first on, so many.
	first, columns int
	convert        func(parquet.Value) any // of a leaf
}

// maxDepth is how deep fields can be nested. The library has the same limit.
const maxDepth = parquet.MaxColumnDepth

// A tree makes nodes of the schema, which is a list of fields, each before its children.
type tree struct {
	fields  []format.SchemaElement
	next    int // field
	columns int // so far
}

var errSchema = errors.New("the schema is not a tree")

// newTree returns the root.
func newTree(fields []format.SchemaElement) (*node, error) {
	t := &tree{fields: fields}
	root, err := t.build(nil, 0)
	if err != nil {
		return nil, err
	}
	if t.next != len(fields) || root.kind == leaf {
		return nil, errSchema
	}
	root.kind = record
	return root, nil
}

func (t *tree) build(parent *node, depth int) (*node, error) {
	if t.next >= len(t.fields) || depth > maxDepth {
		return nil, errSchema
	}
	f := &t.fields[t.next]
	t.next++
	n := &node{name: f.Name, first: t.columns}
	if parent != nil {
		n.place(parent, f.RepetitionType.V)
	}
	if f.Type.Valid {
		n.columns, n.convert = 1, converter(f)
		t.columns++
		return n, nil
	}
	for range f.NumChildren.V {
		child, err := t.build(n, depth+1)
		if err != nil {
			return nil, err
		}
		n.children = append(n.children, child)
	}
	n.columns = t.columns - n.first
	if n.columns == 0 {
		return nil, fmt.Errorf("the group %q has no fields", n.name)
	}
	n.kind = n.groupKind(f)
	return n, nil
}

// place sets the levels.
func (n *node) place(parent *node, repetition format.FieldRepetitionType) {
	n.def, n.rep = parent.def, parent.rep
	switch repetition {
	case format.Optional:
		n.def++
	case format.Repeated:
		n.def++
		n.rep++
		n.repeated = true
	}
}

// groupKind says whether a group is a list or a map. One that says so but is not built like one is a
// record.
func (n *node) groupKind(f *format.SchemaElement) kind {
	if len(n.children) != 1 || !n.children[0].repeated {
		return record
	}
	_, isList := f.LogicalType.Value.(*format.ListType)
	_, isMap := f.LogicalType.Value.(*format.MapType)
	if c := f.ConvertedType; c.Valid && f.LogicalType.Value == nil {
		isList = c.V == deprecated.List
		isMap = c.V == deprecated.Map || c.V == deprecated.MapKeyValue
	}
	entry := n.children[0]
	switch {
	case isList:
		return list
	case isMap && entry.kind == record && len(entry.children) == 2 && entry.children[0].kind == leaf && !entry.children[0].repeated:
		return dict
	}
	return record
}

// element returns what a list holds: the repeated field itself in files of old writers, its only child in
// others. The rules are those of the format's LogicalTypes.md.
func (n *node) element() (e *node, itself bool) {
	e = n.children[0]
	if e.kind == leaf || len(e.children) != 1 || e.name == "array" || e.name == n.name+"_tuple" {
		return e, true
	}
	return e.children[0], false
}

// Child implements render.Name.
func (n *node) Child(name string) (render.Name, bool) {
	if n.kind != record || n.repeated {
		return nil, false
	}
	for _, c := range n.children {
		if c.name == name {
			return c, true
		}
	}
	return nil, false
}

// leaf returns the node of a column below n.
func (n *node) leaf(column int) *node {
	for _, child := range n.children {
		if column < child.first+child.columns {
			return child.leaf(column)
		}
	}
	return n
}

func (n *node) scalar() bool { return n.kind == leaf && !n.repeated }
