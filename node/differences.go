package node

import (
	"fmt"
	"slices"
	"strings"

	"sequins/internal/content"
	"sequins/version"
	"sequins/version/discovery"
)

// Two nodes can hold different contents of a version: if it has no marker and its job paused for longer
// than settle, or if it was modified. Replicas of one content are not counted and not asked by nodes that hold
// the other. A node that sees another content compares its own with the source, as it does after a switch (see check). If the
// source has another input, the node loads that, and answers clients from its own content until then.

// lookAtOthers lists the versions again if what other nodes hold of a version has changed since the last
// comparison.
func (ls *lister) lookAtOthers() {
	if ls.listing {
		return // called again at the end of the listing, which may have begun too early
	}
	others := make(map[content.Input]string)
	differ := false
	for in, l := range ls.db.keeper.live {
		var codes []string
		for c := range l.Elsewhere() {
			if c.Input != in {
				codes = append(codes, c.Code())
			}
		}
		if len(codes) > 0 && in.Name >= ls.db.facts.Current.Name {
			slices.Sort(codes)
			others[in] = strings.Join(codes, " ")
			differ = differ || ls.others[in] != others[in]
		}
	}
	ls.others = others
	if differ {
		ls.startListing(true)
	}
}

// reportWrong reports what two consecutive listings have found to be wrong.
func (ls *lister) reportWrong(before, now discovery.Listing) {
	wrong := make(map[content.Input]string)
	for in, text := range now.Wrong {
		if before.Wrong[in] != text {
			continue
		}
		wrong[in] = text
		if ls.wrong[in] != text {
			ls.db.log.Error(text)
		}
	}
	ls.wrong = wrong
	for in, text := range now.Differs {
		if before.Differs[in] == "" {
			ls.db.log.Warn(text)
		}
	}
}

// divergence describes a current version whose files have changed; "" if they have not.
func (d *db) divergence(shown *view, v *versionView) string {
	text := v.differs
	for _, other := range shown.versions {
		switch {
		case text == "" || other.Name != v.Name || other.Input == v.Input:
		case other.Failure.Reason != "":
			text += "; that has failed: " + other.Failure.Reason
		case other.Verdict == version.Held:
			text += "; what the source has now is loaded and held: " + other.verdict.Reason
		}
	}
	return text
}

// divergences describes all active versions whose files have changed, and those with something wrong.
func (n *Node) divergences() (problems []string) {
	for _, d := range *n.catalog.Load() {
		shown := d.view.Load()
		for i := range shown.versions {
			switch v := &shown.versions[i]; {
			case v.differs != "":
				problems = append(problems, d.divergence(shown, v))
			case v.wrong != "":
				problems = append(problems, v.wrong)
			case v.verdict.Skipped != "":
				problems = append(problems, fmt.Sprintf("the gate of %s judges version %s without some of its rules: %s", d.name, v.Name, v.verdict.Skipped))
			case len(v.verdict.Otherwise) > 0:
				problems = append(problems, fmt.Sprintf("%s judges versions of %s by other rules than this node: configure the same [gate] on all nodes",
					strings.Join(v.verdict.Otherwise, ", "), d.name))
			}
		}
	}
	slices.Sort(problems)
	return slices.Compact(problems)
}
