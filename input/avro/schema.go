package avro

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

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

type field struct {
	name string
	typ  *typ
}

// parseSchema prepares a schema for decoding. It accepts every name, as Java's reader does of a file: BigQuery, Java's
// reflection and Spark write names that the specification does not allow. It does not look at defaults, which a reader of
// the file's own schema does not need.
func parseSchema(schema []byte) (*typ, error) {
	in := json.NewDecoder(bytes.NewReader(schema))
	in.UseNumber()
	var node any
	if err := in.Decode(&node); err != nil {
		return nil, fmt.Errorf("the schema is not JSON: %w", err)
	}
	if _, err := in.Token(); err != io.EOF {
		return nil, errors.New("the schema has more than one JSON value")
	}
	c := compiler{named: map[string]*typ{}}
	return c.compile(node, "", 0)
}

// compiler converts nodes of a schema to typs. Named types are converted once, as they may refer to themselves.
type compiler struct {
	named map[string]*typ // by full names
}

func (c *compiler) compile(node any, namespace string, depth int) (t *typ, err error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("the types of the schema are nested more than %d levels deep", maxDepth)
	}
	switch node := node.(type) {
	case string:
		return c.reference(node, namespace)
	case []any:
		return c.union(node, namespace, depth)
	case map[string]any:
		return c.object(node, namespace, depth)
	}
	return nil, errors.New("a type in the schema is missing, or neither a name, a list nor an object")
}

// reference returns the type of a name. One in the same namespace may go without it.
func (c *compiler) reference(name, namespace string) (*typ, error) {
	if t, err := scalar(name, nil); t != nil || err != nil {
		return t, err
	}
	if t := c.named[namespace+"."+name]; t != nil && namespace != "" && !strings.Contains(name, ".") {
		return t, nil
	}
	if t := c.named[name]; t != nil {
		return t, nil
	}
	return nil, fmt.Errorf("unknown type %.100q in the schema", name)
}

func (c *compiler) union(nodes []any, namespace string, depth int) (*typ, error) {
	t := &typ{kind: "union"}
	for _, node := range nodes {
		b, err := c.compile(node, namespace, depth+1)
		if err != nil {
			return nil, err
		}
		if b.kind == "union" {
			return nil, errors.New("a union in the schema is directly within another")
		}
		t.branches = append(t.branches, b)
	}
	return t, nil
}

func (c *compiler) object(node map[string]any, namespace string, depth int) (t *typ, err error) {
	kind, ok := node["type"].(string)
	if !ok {
		return c.compile(node["type"], namespace, depth+1)
	}
	t = &typ{kind: kind}
	switch kind {
	case "record", "error":
		t.kind = "record"
		if namespace, err = c.define(t, node, namespace); err != nil {
			return nil, err
		}
		return t, c.addFields(t, node, namespace, depth)
	case "array":
		t.item, err = c.compile(node["items"], namespace, depth+1)
		return t, err
	case "map":
		t.item, err = c.compile(node["values"], namespace, depth+1)
		return t, err
	}
	if kind == "enum" || kind == "fixed" {
		if _, err := c.define(t, node, namespace); err != nil {
			return nil, err
		}
	}
	found, err := scalar(kind, node)
	if err != nil {
		return nil, err
	}
	if found == nil {
		return c.reference(kind, namespace)
	}
	t.read = found.read
	return t, nil
}

// define makes t the type of the name in node, and returns the namespace within the type.
func (c *compiler) define(t *typ, node map[string]any, namespace string) (within string, err error) {
	name, ok := node["name"].(string)
	if !ok {
		return "", fmt.Errorf("a type %s in the schema has no name", t.kind)
	}
	if dot := strings.LastIndexByte(name, '.'); dot >= 0 {
		namespace, name = name[:dot], name[dot+1:]
	} else if own, ok := node["namespace"].(string); ok {
		namespace = own
	}
	if namespace != "" {
		name = namespace + "." + name
	}
	if c.named[name] != nil {
		return "", fmt.Errorf("the schema defines the type %.100q twice", name)
	}
	c.named[name] = t
	return namespace, nil
}

func (c *compiler) addFields(t *typ, node map[string]any, namespace string, depth int) error {
	nodes, ok := node["fields"].([]any)
	if !ok {
		return fmt.Errorf("the record %.100q in the schema has no list of fields", node["name"])
	}
	seen := map[string]bool{}
	for _, node := range nodes {
		object, _ := node.(map[string]any)
		name, ok := object["name"].(string)
		if !ok {
			return fmt.Errorf("a field of the record %.100q in the schema has no name", node)
		}
		if seen[name] {
			return fmt.Errorf("a record in the schema has two fields %.100q", name)
		}
		seen[name] = true
		ft, err := c.compile(object["type"], namespace, depth+1)
		if err != nil {
			return err
		}
		t.fields = append(t.fields, field{name, ft})
	}
	return nil
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
