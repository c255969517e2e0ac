package node

import (
	"slices"

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
