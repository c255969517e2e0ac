package parquet

import "sequins/internal/render"

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

// isNull reports whether a field is null or, if it is repeated, empty. If so it passes over the value of each column below n that
// says so.
func (r row) isNull(n *node) (null bool, err error) {
	v, ok := r.peek(n)
	if !ok {
		return false, errLevels
	}
	if int(v.def) >= n.def {
		return false, nil
	}
	for _, c := range r[n.first : n.first+n.columns] {
		if c.at >= len(c.row) {
			return false, errLevels
		}
		c.at++
	}
	return true, nil
}

// scalar returns a field that is a single value, or nil for null.
func (r row) scalar(n *node) (any, error) {
	if null, err := r.isNull(n); null || err != nil {
		return nil, err
	}
	return r.leaf(n)
}

// leaf returns a column's value that is known not to be null.
func (r row) leaf(n *node) (any, error) {
	v, ok := r.peek(n)
	if !ok || int(v.def) != n.def {
		return nil, errLevels
	}
	r[n.first].at++
	return n.convert(&v), nil
}

// text appends a field as it is served: a single value as text, nothing for null, and JSON for everything else.
func (r row) text(dst []byte, n *node) ([]byte, error) {
	if n.scalar() {
		v, err := r.scalar(n)
		return render.AppendText(dst, v), err
	}
	if !n.repeated {
		if null, err := r.isNull(n); null || err != nil {
			return dst, err
		}
	}
	return r.field(dst, n)
}

// field appends a field as JSON, including null and repeated ones.
func (r row) field(dst []byte, n *node) ([]byte, error) {
	if n.repeated {
		return r.elements(dst, n, n, true)
	}
	null, err := r.isNull(n)
	switch {
	case err != nil:
		return dst, err
	case null:
		return append(dst, "null"...), nil
	}
	return r.present(dst, n)
}

// present appends a column's value or a group's fields that are known not to be null.
func (r row) present(dst []byte, n *node) (_ []byte, err error) {
	switch n.kind {
	case leaf:
		v, err := r.leaf(n)
		return render.AppendJSON(dst, v), err
	case list:
		e, itself := n.element()
		return r.elements(dst, n.children[0], e, itself)
	case dict:
		return r.entries(dst, n.children[0])
	}
	dst = append(dst, '{')
	for i, child := range n.children {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = r.field(render.AppendName(dst, child.name), child); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}

// elements appends a list. repeated is the repeated field; e is the element, which is that field itself or its child.
func (r row) elements(dst []byte, repeated, e *node, itself bool) ([]byte, error) {
	one := r.field
	if itself {
		one = r.present
	}
	dst, err := r.each(append(dst, '['), repeated, func(dst []byte) ([]byte, error) { return one(dst, e) })
	return append(dst, ']'), err
}

// entries appends a map. Keys that are bytes are base64, as bytes are in JSON: as text, different ones could become the same.
func (r row) entries(dst []byte, entry *node) ([]byte, error) {
	dst, err := r.each(append(dst, '{'), entry, func(dst []byte) ([]byte, error) {
		key, err := r.scalar(entry.children[0])
		if err != nil {
			return dst, err
		}
		if b, ok := key.([]byte); ok {
			dst = append(render.AppendJSON(dst, b), ':')
		} else {
			dst = render.AppendName(dst, render.Text(render.AppendText(nil, key)))
		}
		return r.field(dst, entry.children[1])
	})
	return append(dst, '}'), err
}

// each appends each repetition of a field, with commas between them.
func (r row) each(dst []byte, n *node, one func(dst []byte) ([]byte, error)) ([]byte, error) {
	null, err := r.isNull(n)
	for more := !null; more && err == nil; {
		dst, err = one(dst)
		v, ok := r.peek(n)
		if more = ok && int(v.rep) >= n.rep; more {
			dst = append(dst, ',')
		}
	}
	return dst, err
}
