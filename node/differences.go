package node

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"sequins/internal/content"
	"sequins/version"
)

// Two nodes can hold different contents of a version: if it has no marker and its job paused for longer than settle, or if it was modified. Replicas
// of one content are not counted and not asked by nodes that hold the other. A node that sees another content compares its own with the source, as it
// does after a switch (see check). If the source has another input, the node loads that, and answers clients from its own content until then.

// lookAtOthers lists the versions again if what other nodes hold of a version has changed since the last comparison.
func (ls *lister) lookAtOthers() {
	if ls.listing || ls.db.facts.Source == version.Unasked {
		return // it is called again at the end of the listing, which may have begun too early
	}
	var others []string
	for in, l := range ls.db.live {
		for c := range l.Elsewhere() {
			if c.Input != in && in.Name >= ls.db.facts.Current.Name {
				others = append(others, c.Name+" "+c.Code())
			}
		}
	}
	slices.Sort(others)
	if len(others) > 0 && !slices.Equal(others, ls.others) {
		ls.startListing(true)
	}
	ls.others = others
}

// passedOver describes a version in the source that is not loaded because its name is less than that of the served one byte by byte,
// although its number is greater, as 10 is after 9; "" if there is none.
func (ls *lister) passedOver(in content.Input) string {
	name := in.Name
	if in != ls.db.facts.Current || ls.memory.pin.Version != "" {
		return ""
	}
	for _, other := range ls.db.last.Names {
		if other >= name { // they are ascending
			break
		}
		if numberedAfter(other, name) {
			return fmt.Sprintf("version %s of %s is in the source and is not loaded: names are compared byte by byte, and %[1]s is less than %[3]s, which is served; write it with a greater name, such as a date or numbers of equal length",
				other, ls.db.name, name)
		}
	}
	return ""
}

// numberedAfter reports whether two names differ in the number at their ends alone, and that of a is greater.
func numberedAfter(a, b string) bool {
	const digits = "0123456789"
	stemA, stemB := strings.TrimRight(a, digits), strings.TrimRight(b, digits)
	a, b = strings.TrimLeft(a[len(stemA):], "0"), strings.TrimLeft(b[len(stemB):], "0")
	return stemA == stemB && cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) > 0
}
