package avro

import (
	"fmt"
	"maps"
	"slices"

	"sequins/internal/render"
)

// maxDepth is how deep a value may be nested. Records can contain themselves.
const maxDepth = 500

// value turns what the library decoded into what render takes.
func (t *typ) value(v any, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("a value is nested more than %d deep", maxDepth)
	}
	t, v, err := t.untag(v)
	if err != nil || v == nil {
		return nil, err
	}
	switch t.kind {
	case "record":
		return t.recordValue(v, depth)
	case "array":
		return t.list(v, depth)
	case "map":
		return t.mapValue(v, depth)
	}
	return t.convert(v)
}

// untag returns the branch of a union that v is of, and the bare value. A tag is a map of one entry, the
// branch's name and the value.
func (t *typ) untag(v any) (*typ, any, error) {
	if t.kind != "union" || v == nil {
		return t, v, nil
	}
	if tagged, ok := v.(map[string]any); ok && len(tagged) == 1 {
		for name, bare := range tagged {
			if b := t.branches[name]; b != nil {
				return b, bare, nil
			}
		}
	}
	return nil, nil, unexpected(v)
}

func (t *typ) recordValue(v any, depth int) (any, error) {
	in, ok := v.(map[string]any)
	if !ok {
		return nil, unexpected(v)
	}
	out := make(render.Record, len(t.fields))
	for i, f := range t.fields {
		var err error
		out[i].Name = f.name
		if out[i].Value, err = f.typ.value(in[f.name], depth+1); err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return out, nil
}

func (t *typ) list(v any, depth int) (any, error) {
	in, ok := v.([]any)
	if !ok {
		return nil, unexpected(v)
	}
	out := make(render.List, len(in))
	for i, item := range in {
		var err error
		if out[i], err = t.item.value(item, depth+1); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// mapValue sorts the entries by their names: the library does not keep the file's order, and the same
// record must always give the same bytes.
func (t *typ) mapValue(v any, depth int) (any, error) {
	in, ok := v.(map[string]any)
	if !ok {
		return nil, unexpected(v)
	}
	out := make(render.Record, 0, len(in))
	for _, name := range slices.Sorted(maps.Keys(in)) {
		value, err := t.item.value(in[name], depth+1)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		out = append(out, render.Field{Name: name, Value: value})
	}
	return out, nil
}

// find goes from a record that the library decoded down a path, and returns what is there; nil where it
// ends at a null before.
func (t *typ) find(v any, path []string) (any, error) {
	for _, name := range path {
		var err error
		if t, v, err = t.untag(v); err != nil || v == nil {
			return nil, err
		}
		fields, ok := v.(map[string]any)
		if !ok || t.kind != "record" {
			return nil, nil // another branch of the union, which has no such field
		}
		child, ok := t.Child(name)
		if !ok {
			return nil, nil
		}
		t, v = child.(*typ), fields[name]
	}
	return t.value(v, 0)
}
