package parquet

import (
	"encoding/base64"

	"sequins/internal/render"
)

// row holds the columns by their number in the file; nil for columns that are not read.
type row []*column

// peek returns the next value of the first column below n; ok is false if the column has none although the levels of
// another column require it.
func (r row) peek(n *node) (v value, ok bool) {
	c := r[n.first]
	if c.at >= len(c.row) {
		return v, false
	}
	return c.row[c.at], true
}

// skip passes over one value of each column below n, each of which says that there is none.
func (r row) skip(n *node) error {
	for _, c := range r[n.first : n.first+n.columns] {
		if c.at >= len(c.row) {
			return errLevels
		}
		c.at++
	}
	return nil
}

// field assembles a field, including null and repeated ones.
func (r row) field(n *node) (any, error) {
	if n.repeated {
		return r.elements(n, n, true)
	}
	v, ok := r.peek(n)
	if !ok {
		return nil, errLevels
	}
	if int(v.def) < n.def {
		return nil, r.skip(n)
	}
	return r.present(n)
}

// present assembles a column's value or a group's fields that are known not to be null.
func (r row) present(n *node) (any, error) {
	switch n.kind {
	case leaf:
		v, ok := r.peek(n)
		if !ok {
			return nil, errLevels
		}
		r[n.first].at++
		if int(v.def) != n.def {
			return nil, errLevels
		}
		return n.convert(&v), nil
	case list:
		e, itself := n.element()
		return r.elements(n.children[0], e, itself)
	case dict:
		return r.entries(n.children[0])
	}
	out := make(render.Record, len(n.children))
	for i, child := range n.children {
		var err error
		out[i].Name = child.name
		if out[i].Value, err = r.field(child); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// elements assembles a list. repeated is the repeated field; e is the element, which is that field itself or its child.
func (r row) elements(repeated, e *node, itself bool) (any, error) {
	one := r.field
	if itself {
		one = r.present
	}
	out := render.List{}
	err := r.each(repeated, func() error {
		v, err := one(e)
		out = append(out, v)
		return err
	})
	return out, err
}

// entries puts together a map. Keys that are bytes are base64, as bytes are in JSON: as text, different ones
// could become the same. Of several entries of a name the last counts.
func (r row) entries(entry *node) (any, error) {
	out := render.Record{}
	err := r.each(entry, func() error {
		key, err := r.field(entry.children[0])
		if err != nil {
			return err
		}
		value, err := r.field(entry.children[1])
		if b, ok := key.([]byte); ok {
			key = base64.StdEncoding.EncodeToString(b)
		}
		name := render.AppendUTF8(nil, render.AppendText(nil, key))
		out = append(out, render.Field{Name: string(name), Value: value})
		return err
	})
	return lastOfEach(out), err
}

// lastOfEach removes the entries of a map that later ones of the same name replace.
func lastOfEach(entries render.Record) render.Record {
	last := make(map[string]int, len(entries))
	for i, e := range entries {
		last[e.Name] = i
	}
	if len(last) == len(entries) {
		return entries
	}
	kept := entries[:0]
	for i, e := range entries {
		if last[e.Name] == i {
			kept = append(kept, e)
		}
	}
	return kept
}

// each calls do for each repetition of a field.
func (r row) each(n *node, do func() error) error {
	v, ok := r.peek(n)
	if !ok {
		return errLevels
	}
	if int(v.def) < n.def {
		return r.skip(n)
	}
	for {
		if err := do(); err != nil {
			return err
		}
		if v, ok := r.peek(n); !ok || int(v.rep) < n.rep {
			return nil
		}
	}
}
