package reads

import (
	"bytes"

	"sequins/blocks"
	"sequins/internal/content"
)

// Range selects records of a version: those whose key begins with Prefix and is at least Start and less than End.
type Range struct {
	Prefix, Start []byte
	End           []byte // empty for no end
	// After is the text of a cursor, or nil. It adds its own conditions: its version, behind its key, and before its end.
	After []byte
	// KeysOnly reads keys without their values.
	KeysOnly bool
	// Limit is the maximum number of records; 0 for no limit.
	Limit int64
}

// interval is the range of keys from start up to, not including, end; a nil end is none.
type interval struct{ start, end []byte }

// interval returns the intersection of all conditions.
func (g *Range) interval() interval {
	in := interval{start: g.Start}
	if bytes.Compare(g.Prefix, in.start) > 0 {
		in.start = g.Prefix
	}
	if len(g.End) > 0 {
		in.end = g.End
	}
	in.before(blocks.PrefixEnd(g.Prefix))
	return in
}

// before restricts the interval to keys before end, unless it is nil.
func (in *interval) before(end []byte) {
	if end != nil && (in.end == nil || bytes.Compare(end, in.end) < 0) {
		in.end = end
	}
}

// after restricts the interval to keys behind last.
func (in *interval) after(last []byte) {
	if bytes.Compare(last, in.start) >= 0 {
		in.start = successor(last)
	}
}

func (in *interval) empty() bool {
	return in.end != nil && bytes.Compare(in.start, in.end) >= 0
}

func (in *interval) whole() bool { return len(in.start) == 0 && in.end == nil }

// successor returns the least key greater than key.
func successor(key []byte) []byte { return append(key[:len(key):len(key)], 0) }

// openRange acquires the version: the content of the cursor, if there is one.
func (r *Read) openRange(q *Query, g *Range, in *interval) Outcome {
	if g.After == nil {
		return r.open(q)
	}
	c, err := parseCursor(g.After, string(q.DB))
	if err != nil {
		return BadCursor
	}
	asked, name := q.Exact, c.content.Name
	q.Exact, q.after = []byte(name), c.content
	o := r.open(q)
	switch {
	case o == Gone && r.notYet(c.content):
		return Behind
	case o == Gone, o == Behind: // of q.AtLeast, which is later than the cursor
		return Expired
	case o != Found:
		return o
	case len(asked) > 0 && string(asked) != name:
		return Gone
	}
	in.after(c.last)
	in.before(c.end)
	return Found
}

// notYet reports whether another node has switched to a content before this one: its name is later than any that was current here, or this node has it
// and has not judged it yet. What was rolled back is neither.
func (r *Read) notYet(c content.Content) bool {
	set := r.reader.catalog.Set(r.query.DB)
	if set == nil {
		return false
	}
	v := set.Version(c.Input)
	return c.Name > set.Reached() || v != nil && v.Content == c && c.Name <= set.Current().Name
}
