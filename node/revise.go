package node

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"sequins/discovery"
	"sequins/version"
)

// Two nodes can have different plans of a version: if it has no marker and its job paused for longer
// than settle, or if it was modified. Replicas of one plan are not counted and not asked by nodes of
// the other. A node that sees another plan compares its own plan with the source, as it does after a switch (see check). If the
// files in the source differ, the node loads the version again as a revision, see version.Revise. It compares its
// current version, too, if it cannot restore a block that no other node holds.

// newest returns the ids of the newest revisions of versions on this node, by version name.
func (d *db) newest() map[string]string {
	ids := make(map[string]string)
	for _, v := range d.state.Entries { // ascending
		if v.Exit == version.Staying {
			ids[version.Name(v.Name)] = v.Name
		}
	}
	return ids
}

// revised replaces each changed version of a listing by its next revision, unless its plan has changed
// since.
func (d *db) revised(l listing) listing {
	for _, id := range l.Changed {
		now := d.live[id]
		if now == nil || !now.manifest.SamePlan(l.Compared[id]) {
			continue
		}
		next := d.nextRevision(id)
		if !slices.Contains(d.last.Versions, next) { // a newer version may be loaded first
			d.log.Warn("the files of a version have changed in the source, and it has to be loaded from them; clients are answered from the blocks before until then",
				"version", id, "revision", next)
		}
		l.Versions = slices.DeleteFunc(slices.Clone(l.Versions), func(v string) bool { return v == id })
		l.Versions = append(l.Versions, next)
		slices.Sort(l.Versions)
	}
	return l
}

// nextRevision returns the id of a new revision. It also counts revisions that are being removed.
func (d *db) nextRevision(id string) string {
	last := id
	for _, v := range d.state.Entries {
		if version.Name(v.Name) == version.Name(id) {
			last = v.Name
		}
	}
	return version.Revise(last)
}

// lookAtOthers lists the versions again if the other plans of a version have changed since the last
// comparison.
func (d *db) lookAtOthers() {
	if d.listing {
		return // called again at the end of the listing, which may have begun too early
	}
	others := make(map[string]string)
	differ := false
	for _, id := range d.newest() {
		l := d.live[id]
		if l == nil {
			continue
		}
		if plans := strings.Join(l.OtherPlans(), " "); plans != "" {
			others[id] = plans
			differ = differ || d.others[id] != plans
		}
	}
	d.others = others
	if differ {
		d.startListing(true)
	}
}

// reportWrong reports what two consecutive listings have found to be wrong.
func (d *db) reportWrong(before, now discovery.Listing) {
	wrong := make(map[string]string)
	for id, text := range now.Wrong {
		if before.Wrong[id] != text {
			continue
		}
		wrong[id] = text
		if d.wrong[id] != text {
			d.log.Error(text)
		}
	}
	d.wrong = wrong
	for id, text := range now.Differs {
		if before.Differs[id] == "" {
			d.log.Warn(text)
		}
	}
}

// shared reports whether another node holds any partition of a version by this node's plan. It may be
// called on any goroutine.
func (d *db) shared(id string, partitions int) bool {
	live := d.view.Load().versions[id].live
	return live != nil && version.IsReadable(live.Info().Following, make([]bool, partitions))
}

// divergence describes a current version whose files have changed.
func (d *db) divergence(shown *view, v versionView) string {
	text := cmp.Or(v.differs, fmt.Sprintf("version %s of %s was loaded from other files than the source has now; it is being loaded again",
		version.Name(v.Name), d.name))
	if reason := shown.versions[v.revision].Reason; reason != "" {
		text += "; that has failed: " + reason
	}
	return text
}

// divergences describes all active versions whose files have changed, and those with something wrong.
func (n *Node) divergences() (problems []string) {
	for _, d := range *n.catalog.Load() {
		shown := d.view.Load()
		for _, v := range shown.versions {
			switch {
			case v.revision != "" || v.differs != "":
				problems = append(problems, d.divergence(shown, v))
			case v.wrong != "":
				problems = append(problems, v.wrong)
			case len(v.verdict.Otherwise) > 0:
				problems = append(problems, fmt.Sprintf("%s judges versions of %s by other rules than this node: configure the same [gate] on all nodes",
					strings.Join(v.verdict.Otherwise, ", "), d.name))
			}
		}
	}
	slices.Sort(problems)
	return slices.Compact(problems)
}
