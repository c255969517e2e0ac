package avro

import (
	"fmt"

	"sequins/internal/render"
)

const (
	// maxDepth bounds the nesting of values. Records can contain themselves.
	maxDepth = 500
	// maxEmpty bounds the values of a record, and the consecutive records, that take no bytes in the file; beyond it,
	// each valuesPerByte of them need a byte. Otherwise a few bytes could mean any number of values.
	maxEmpty      = 64 << 10
	valuesPerByte = 64
)

// place is the location of a wanted field relative to a type: the remaining names of its path, or not below the type.
type place struct {
	path []string
	here bool
}

func (p place) below(name string) place {
	if !p.here || len(p.path) == 0 || p.path[0] != name {
		return place{}
	}
	return place{p.path[1:], true}
}

// is reports whether the type itself is the wanted field.
func (p place) is() bool { return p.here && len(p.path) == 0 }

// row decodes one record: it extracts key and value while reading, and keeps nothing else.
type row struct {
	*stream
	key, value []byte
	hasKey     bool // the key is not null

	start  int // where the record begins in the stream
	values int // that were read, also those that hold others
}

// enter checks depth and the number of values, and returns the branch of a union.
func (r *row) enter(t *typ, depth int) *typ {
	if depth > maxDepth {
		r.fail(fmt.Errorf("a value is nested more than %d deep", maxDepth))
	}
	if r.values++; r.values > maxEmpty && r.values > maxEmpty+valuesPerByte*(r.pos-r.start) {
		r.fail(fmt.Errorf("more than %d values in %d bytes", maxEmpty, r.pos-r.start))
	}
	if r.err != nil {
		return null
	}
	if t.kind != "union" {
		return t
	}
	n := r.long()
	if r.err != nil || n < 0 || n >= int64(len(t.branches)) {
		r.fail(fmt.Errorf("branch %d of a union of %d", n, len(t.branches)))
		return null
	}
	return t.branches[n]
}

// null stands for an unreadable value.
var null = &typ{kind: "null", read: func(*stream) any { return nil }}

// visit reads a value of t and extracts what is wanted.
func (r *row) visit(t *typ, key, value place, depth int) {
	if value.is() {
		r.value = r.text(t, r.value, key, depth)
		return
	}
	if !key.here && !value.here {
		r.skip(t, depth)
		return
	}
	switch t = r.enter(t, depth); {
	case key.is() && t.read != nil:
		r.takeKey(t.read(r.stream))
	case t.kind == "record":
		for _, f := range t.fields {
			r.visit(f.typ, key.below(f.name), value.below(f.name), depth+1)
		}
	default: // another branch of a union, which has no such field
		r.body(t, depth)
	}
}

func (r *row) takeKey(v any) {
	r.key, r.hasKey = render.AppendText(r.key[:0], v), v != nil
}

// skip reads an unwanted value.
func (r *row) skip(t *typ, depth int) { r.body(r.enter(t, depth), depth) }

// body reads an unwanted value that is no union.
func (r *row) body(t *typ, depth int) {
	switch t.kind {
	case "record":
		for _, f := range t.fields {
			r.skip(f.typ, depth+1)
		}
	case "array":
		r.blocks(func() { r.skip(t.item, depth+1) })
	case "map":
		r.blocks(func() {
			r.take(r.length())
			r.skip(t.item, depth+1)
		})
	case "string", "bytes":
		r.take(r.length())
	case "int":
		r.int()
	case "long":
		r.long()
	default:
		t.read(r.stream)
	}
}

// text appends a value as it is served: JSON if it is a record, an array or a map.
func (r *row) text(t *typ, dst []byte, key place, depth int) []byte {
	t = r.enter(t, depth)
	if t.read == nil {
		return r.json(t, dst, key, depth)
	}
	v := t.read(r.stream)
	if key.is() {
		r.takeKey(v)
	}
	return render.AppendText(dst, v)
}

// json appends a value that is no union, as JSON.
func (r *row) json(t *typ, dst []byte, key place, depth int) []byte {
	if len(dst) > MaxValue {
		r.fail(errTooLarge)
	}
	if r.err != nil {
		return dst
	}
	switch t.kind {
	case "record":
		return r.jsonRecord(t, dst, key, depth)
	case "array":
		dst = append(dst, '[')
		start := len(dst)
		r.blocks(func() {
			if len(dst) > start {
				dst = append(dst, ',')
			}
			dst = r.json(r.enter(t.item, depth+1), dst, place{}, depth+1)
		})
		return append(dst, ']')
	case "map":
		dst = append(dst, '{')
		start := len(dst)
		r.blocks(func() {
			if len(dst) > start {
				dst = append(dst, ',')
			}
			dst = render.AppendName(dst, render.Text(r.take(r.length())))
			dst = r.json(r.enter(t.item, depth+1), dst, place{}, depth+1)
		})
		return append(dst, '}')
	}
	v := t.read(r.stream)
	if key.is() {
		r.takeKey(v)
	}
	if len(dst)+jsonSize(v) > MaxValue {
		r.fail(errTooLarge)
		return dst
	}
	return render.AppendJSON(dst, v)
}

var errTooLarge = fmt.Errorf("a value is larger than %d bytes", MaxValue)

// jsonSize is at least how long a string or bytes are as JSON; 0 for what is short.
func jsonSize(v any) int {
	switch v := v.(type) {
	case []byte:
		return len(v) / 3 * 4
	case render.Text:
		n := len(v)
		for _, c := range v {
			switch {
			case c < ' ':
				n += len(`\u0000`) - 1
			case c >= 0x80:
				n += len("\ufffd") - 1
			}
		}
		return n
	}
	return 0
}

func (r *row) jsonRecord(t *typ, dst []byte, key place, depth int) []byte {
	dst = append(dst, '{')
	for i, f := range t.fields {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = render.AppendName(dst, f.name)
		dst = r.json(r.enter(f.typ, depth+1), dst, key.below(f.name), depth+1)
	}
	return append(dst, '}')
}
