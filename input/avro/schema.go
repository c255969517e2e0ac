package avro

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/twmb/avro"

	"sequins/internal/render"
)

// typ is a type of the file's schema, prepared for decoding.
type typ struct {
	kind     string  // as in the schema; references are resolved
	read     reader  // of a scalar
	fields   []field // of a record
	item     *typ    // of an array, or of a map's values
	branches []*typ  // of a union
}

// String returns the type for people: long, null|string, array.
func (t *typ) String() string {
	if t.kind != "union" {
		return t.kind
	}
	names := make([]string, len(t.branches))
	for i, b := range t.branches {
		names[i] = b.kind
	}
	return strings.Join(names, "|")
}

// reader reads a scalar value for render. Strings and bytes are in the scratch buffer.
type reader func(s *stream, scratch *[]byte) any

type field struct {
	name string
	typ  *typ
}

// plainLogical are the logical types that this package renders from the underlying values. The library would convert
// them to Go types first, including decimals of any scale.
var plainLogical = []string{
	"decimal", "uuid", "date", "duration", "time-millis", "time-micros",
	"timestamp-millis", "timestamp-micros", "timestamp-nanos",
	"local-timestamp-millis", "local-timestamp-micros", "local-timestamp-nanos",
}

// plain makes the library ignore these logical types.
func plain() []avro.SchemaOpt {
	opts := make([]avro.SchemaOpt, len(plainLogical))
	for i, name := range plainLogical {
		opts[i] = avro.CustomType{LogicalType: name}
	}
	return opts
}

// compiler converts schema nodes to typs. Named types are converted once, as they may refer to themselves.
type compiler struct {
	named map[string]*typ
}

// compile makes the typ of a node in a namespace.
func (c *compiler) compile(n *avro.SchemaNode, namespace string) (*typ, error) {
	if t, ok := c.named[c.reference(n, namespace)]; ok && !isDefinition(n) {
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
		for i := range n.Branches {
			b, err := c.compile(&n.Branches[i], namespace)
			if err != nil {
				return nil, err
			}
			t.branches = append(t.branches, b)
		}
	default:
		t.read, err = scalarReader(n)
	}
	return t, err
}

// isDefinition reports whether a node defines a type. A named type can be called "record" or "map", and a node of that
// type is a reference then only if it has nothing else.
func isDefinition(n *avro.SchemaNode) bool {
	return n.Name != "" || n.Items != nil || n.Values != nil || n.Branches != nil
}

// reference returns the full name of the type that a node refers to, if it does: one in the same namespace
// may go without it.
func (c *compiler) reference(n *avro.SchemaNode, namespace string) string {
	if full := namespace + "." + n.Type; namespace != "" && !strings.Contains(n.Type, ".") && c.named[full] != nil {
		return full
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

// scalarReader returns how values of a scalar type are read and rendered.
func scalarReader(n *avro.SchemaNode) (reader, error) {
	switch n.Type {
	case "null":
		return func(*stream, *[]byte) any { return nil }, nil
	case "boolean":
		return readBoolean, nil
	case "float":
		return func(s *stream, _ *[]byte) any { return math.Float32frombits(s.uint32()) }, nil
	case "double":
		return func(s *stream, _ *[]byte) any { return math.Float64frombits(s.uint64()) }, nil
	case "string":
		return func(s *stream, scratch *[]byte) any { return render.Text(readString(s, scratch, s.length())) }, nil
	case "enum":
		return enumReader(n.Symbols), nil
	case "int":
		show := number(n.LogicalType)
		return func(s *stream, _ *[]byte) any { return show(s.int()) }, nil
	case "long":
		show := number(n.LogicalType)
		return func(s *stream, _ *[]byte) any { return show(s.long()) }, nil
	case "bytes":
		show := octets(n)
		return func(s *stream, scratch *[]byte) any { return show(s, readString(s, scratch, s.length())) }, nil
	case "fixed":
		show := octets(n)
		return func(s *stream, scratch *[]byte) any { return show(s, readString(s, scratch, int64(n.Size))) }, nil
	}
	return nil, fmt.Errorf("unknown type %q in the schema", n.Type)
}

func readBoolean(s *stream, _ *[]byte) any {
	switch s.byte() {
	case 0:
		return false
	case 1:
		return true
	}
	s.fail(errors.New("a boolean that is neither true nor false"))
	return nil
}

func enumReader(symbols []string) reader {
	return func(s *stream, _ *[]byte) any {
		n := s.int()
		if s.err != nil || n < 0 || n >= int64(len(symbols)) {
			s.fail(fmt.Errorf("symbol %d of an enum of %d", n, len(symbols)))
			return nil
		}
		return symbols[n]
	}
}

// readString reads n bytes into the scratch buffer.
func readString(s *stream, scratch *[]byte, n int64) []byte {
	if n > MaxValue {
		s.fail(fmt.Errorf("a string of %d bytes, over %d", n, MaxValue))
		return nil
	}
	*scratch = s.append((*scratch)[:0], n)
	return *scratch
}

// number renders int and long.
func number(logical string) func(int64) any {
	switch logical {
	case "date":
		return func(n int64) any { return render.Date(n) }
	case "time-millis":
		return func(n int64) any { return render.TimeOfDay(n, time.Millisecond) }
	case "time-micros":
		return func(n int64) any { return render.TimeOfDay(n, time.Microsecond) }
	case "timestamp-millis":
		return func(n int64) any { return render.Timestamp(n, time.Millisecond, true) }
	case "timestamp-micros":
		return func(n int64) any { return render.Timestamp(n, time.Microsecond, true) }
	case "timestamp-nanos":
		return func(n int64) any { return render.Timestamp(n, time.Nanosecond, true) }
	case "local-timestamp-millis":
		return func(n int64) any { return render.Timestamp(n, time.Millisecond, false) }
	case "local-timestamp-micros":
		return func(n int64) any { return render.Timestamp(n, time.Microsecond, false) }
	case "local-timestamp-nanos":
		return func(n int64) any { return render.Timestamp(n, time.Nanosecond, false) }
	}
	return func(n int64) any { return n }
}

// maxDecimal is the maximum length of a decimal, in bytes: rendering takes more than linear time.
const maxDecimal = 4 << 10

// octets renders bytes and fixed.
func octets(n *avro.SchemaNode) func(s *stream, b []byte) any {
	switch {
	case n.LogicalType == "decimal" && n.Scale >= 0 && n.Scale <= render.MaxScale:
		return func(s *stream, b []byte) any {
			if len(b) > maxDecimal {
				s.fail(fmt.Errorf("a decimal of %d bytes, over %d", len(b), maxDecimal))
				return nil
			}
			return render.DecimalBytes(b, n.Scale)
		}
	case n.LogicalType == "uuid" && n.Type == "fixed" && n.Size == 16:
		return func(s *stream, b []byte) any { return whole(s, b, n.Size, render.UUID) }
	case n.LogicalType == "duration" && n.Type == "fixed" && n.Size == 12:
		return func(s *stream, b []byte) any { return whole(s, b, n.Size, render.Duration) }
	}
	return func(_ *stream, b []byte) any { return b }
}

// whole renders bytes if they are all there.
func whole(s *stream, b []byte, size int, show func([]byte) string) any {
	if s.err != nil || len(b) != size {
		return nil
	}
	return show(b)
}

// Named implements render.Name: the fields of a record, or of the only record in a union.
func (t *typ) Named(name string) (all []render.Name) {
	t = t.record()
	if t == nil {
		return nil
	}
	for _, f := range t.fields {
		if f.name == name {
			all = append(all, f.typ)
		}
	}
	return all
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

// scalar reports whether no value of t is a record, a map or an array.
func (t *typ) scalar() bool {
	for _, b := range t.branches {
		if !b.scalar() {
			return false
		}
	}
	return t.read != nil || t.kind == "union"
}
