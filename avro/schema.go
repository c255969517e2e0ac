package avro

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/twmb/avro"

	"sequins/internal/render"
)

// A typ is a type of the file's schema, made ready for turning what the library decodes into what render
// takes.
type typ struct {
	kind     string // as in the schema, but for references, which are resolved
	convert  func(any) (any, error)
	fields   []field         // of a record
	item     *typ            // of an array, or of a map's values
	branches map[string]*typ // of a union, by the name the library tags their values with
}

type field struct {
	name string
	typ  *typ
}

// plainLogical are the logical types that are rendered here, from the plain value below them. The library
// would turn them into Go types of its own first, decimals of a hostile scale included.
var plainLogical = []string{
	"decimal", "uuid", "date", "duration", "time-millis", "time-micros",
	"timestamp-millis", "timestamp-micros", "timestamp-nanos",
	"local-timestamp-millis", "local-timestamp-micros", "local-timestamp-nanos",
}

// plain makes the library leave logical types alone.
func plain() []avro.SchemaOpt {
	opts := make([]avro.SchemaOpt, len(plainLogical))
	for i, name := range plainLogical {
		opts[i] = avro.CustomType{LogicalType: name}
	}
	return opts
}

// A compiler makes typs of schema nodes. Types that have a name are made once, as they may refer to
// themselves.
type compiler struct {
	named map[string]*typ
}

// compile makes the typ of a node in a namespace.
func (c *compiler) compile(n *avro.SchemaNode, namespace string) (*typ, error) {
	if t, ok := c.named[c.reference(n, namespace)]; ok {
		return t, nil
	}
	t := &typ{kind: n.Type}
	if n.Name != "" {
		c.named[fullName(n)] = t
		namespace = namespaceOf(fullName(n))
	}
	var err error
	switch n.Type {
	case "record", "error":
		t.kind = "record"
		for i := range n.Fields {
			f := field{name: n.Fields[i].Name}
			if f.typ, err = c.compile(&n.Fields[i].Type, namespace); err != nil {
				return nil, err
			}
			t.fields = append(t.fields, f)
		}
	case "array":
		t.item, err = c.compile(n.Items, namespace)
	case "map":
		t.item, err = c.compile(n.Values, namespace)
	case "union":
		t.branches = map[string]*typ{}
		for i := range n.Branches {
			b, err := c.compile(&n.Branches[i], namespace)
			if err != nil {
				return nil, err
			}
			t.branches[c.branchName(&n.Branches[i], namespace)] = b
		}
	default:
		t.convert, err = converter(n)
	}
	return t, err
}

// reference returns the full name of the type that a node refers to, if it does: one in the same namespace
// may go without it.
func (c *compiler) reference(n *avro.SchemaNode, namespace string) string {
	if c.named[n.Type] == nil && namespace != "" && !strings.Contains(n.Type, ".") {
		return namespace + "." + n.Type
	}
	return n.Type
}

func namespaceOf(fullName string) string {
	return fullName[:max(0, strings.LastIndexByte(fullName, '.'))]
}

func fullName(n *avro.SchemaNode) string {
	if n.Namespace == "" || strings.Contains(n.Name, ".") {
		return n.Name
	}
	return n.Namespace + "." + n.Name
}

// branchName is the key under which the library hands out a value of this branch.
func (c *compiler) branchName(n *avro.SchemaNode, namespace string) string {
	if n.Name != "" {
		return fullName(n)
	}
	if name := c.reference(n, namespace); c.named[name] != nil {
		return name
	}
	return n.Type
}

// converter says how values of a scalar type are rendered.
func converter(n *avro.SchemaNode) (func(any) (any, error), error) {
	switch n.Type {
	case "null", "boolean", "float", "double", "string", "enum":
		return same, nil
	case "int", "long":
		return number(n.LogicalType), nil
	case "bytes", "fixed":
		return octets(n), nil
	}
	return nil, fmt.Errorf("the schema has the type %q, which is not known", n.Type)
}

// same passes on what render takes as it is.
func same(v any) (any, error) {
	switch v.(type) {
	case nil, bool, float32, float64, string:
		return v, nil
	}
	return nil, unexpected(v)
}

func unexpected(v any) error { return fmt.Errorf("a value is a %T, which its schema does not say", v) }

// number renders int and long.
func number(logical string) func(any) (any, error) {
	show := map[string]func(int64) any{
		"date":                   func(n int64) any { return render.Date(n) },
		"time-millis":            func(n int64) any { return render.TimeOfDay(n, time.Millisecond) },
		"time-micros":            func(n int64) any { return render.TimeOfDay(n, time.Microsecond) },
		"timestamp-millis":       func(n int64) any { return render.Timestamp(n, time.Millisecond, true) },
		"timestamp-micros":       func(n int64) any { return render.Timestamp(n, time.Microsecond, true) },
		"timestamp-nanos":        func(n int64) any { return render.Timestamp(n, time.Nanosecond, true) },
		"local-timestamp-millis": func(n int64) any { return render.Timestamp(n, time.Millisecond, false) },
		"local-timestamp-micros": func(n int64) any { return render.Timestamp(n, time.Microsecond, false) },
		"local-timestamp-nanos":  func(n int64) any { return render.Timestamp(n, time.Nanosecond, false) },
	}[logical]
	if show == nil {
		show = func(n int64) any { return n }
	}
	return func(v any) (any, error) {
		switch v := v.(type) {
		case int32:
			return show(int64(v)), nil
		case int64:
			return show(v), nil
		}
		return nil, unexpected(v)
	}
}

// octets renders bytes and fixed.
func octets(n *avro.SchemaNode) func(any) (any, error) {
	show := func(b []byte) any { return b }
	switch {
	case n.LogicalType == "decimal" && n.Scale >= 0 && n.Scale <= render.MaxScale:
		show = func(b []byte) any { return render.DecimalBytes(b, n.Scale) }
	case n.LogicalType == "uuid" && n.Type == "fixed" && n.Size == 16:
		show = func(b []byte) any { return render.UUID(b) }
	case n.LogicalType == "duration" && n.Type == "fixed" && n.Size == 12:
		show = func(b []byte) any { return render.Duration(b) }
	}
	return func(v any) (any, error) {
		b, ok := v.([]byte)
		if !ok || n.Type == "fixed" && len(b) != n.Size {
			return nil, unexpected(v)
		}
		return show(b), nil
	}
}

// Child implements render.Name: the field of a record, or of the only record in a union.
func (t *typ) Child(name string) (render.Name, bool) {
	t = t.record()
	if t == nil {
		return nil, false
	}
	for _, f := range t.fields {
		if f.name == name {
			return f.typ, true
		}
	}
	return nil, false
}

// record returns the record that t is, or may be; nil if there is none, or there are several.
func (t *typ) record() *typ {
	if t.kind == "record" {
		return t
	}
	var found *typ
	for _, b := range t.branches {
		if b.kind != "record" {
			continue
		}
		if found != nil {
			return nil
		}
		found = b
	}
	return found
}

// contains reports whether a value of t can have one of type other in it. seen are the types that have
// been looked at.
func (t *typ) contains(other *typ, seen map[*typ]bool) bool {
	if seen[t] {
		return false
	}
	seen[t] = true
	below := slices.Collect(maps.Values(t.branches))
	for _, f := range t.fields {
		below = append(below, f.typ)
	}
	if t.item != nil {
		below = append(below, t.item)
	}
	return slices.ContainsFunc(below, func(b *typ) bool { return b == other || b.contains(other, seen) })
}

// scalar reports whether no value of t is a record, a map or an array.
func (t *typ) scalar() bool {
	for _, b := range t.branches {
		if !b.scalar() {
			return false
		}
	}
	return t.convert != nil || t.kind == "union"
}
