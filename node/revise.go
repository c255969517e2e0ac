package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"sequins/load"
	"sequins/source"
	"sequins/version"
)

// Two nodes can plan a version differently: a version without a marker whose job
// paused for longer than settle, or that somebody has changed. Replicas of one plan
// are neither counted nor asked by nodes of the other. A node that sees another
// plan than its own compares its plan with the source, and if the files there are
// others it loads the version again as a revision: see version.Revise.

// newest returns the ids of the newest revisions that this node has of versions, by
// their names.
func (d *db) newest() map[string]string {
	ids := make(map[string]string)
	for _, v := range d.state.Entries { // ascending
		if v.Exit == version.Staying {
			ids[version.Name(v.Name)] = v.Name
		}
	}
	return ids
}

// revised replaces each version of a listing that has changed by its next revision,
// unless its plan is another one by now.
func (d *db) revised(l listing) listing {
	for _, id := range l.changed {
		now := d.live[id]
		if now == nil || !now.manifest.SamePlan(l.compared[id]) {
			continue
		}
		next := d.nextRevision(id)
		if !slices.Contains(d.last.versions, next) { // a newer version may be loaded first
			d.log.Warn("the files of a version have changed in the source, and other nodes hold it by other files than this one; it is loaded again",
				"version", id, "revision", next)
		}
		l.versions = slices.DeleteFunc(slices.Clone(l.versions), func(v string) bool { return v == id })
		l.versions = append(l.versions, next)
		slices.Sort(l.versions)
	}
	return l
}

// nextRevision returns the id of a new revision. Those that are being removed count,
// too.
func (d *db) nextRevision(id string) string {
	last := id
	for _, v := range d.state.Entries {
		if version.Name(v.Name) == version.Name(id) {
			last = v.Name
		}
	}
	return version.Revise(last)
}

// lookAtOthers has the versions listed again if other nodes hold one by other plans
// than they did before the last listing.
func (d *db) lookAtOthers() {
	if d.listing {
		return // it may have begun too early, so this is called again at its end
	}
	others := make(map[string]string)
	differ := false
	for _, id := range d.newest() {
		plans := strings.Join(d.node.o.Cluster.OtherPlans(d.name, id), " ")
		if d.live[id] == nil || plans == "" {
			continue
		}
		others[id] = plans
		differ = differ || d.others[id] != plans
	}
	d.others = others
	if differ {
		d.startListing(true)
	}
}

// aloneAfter is how long a node waits for another one with its plan before it reports
// that there is none: the others may be loading the version again.
const aloneAfter = time.Minute

// compare looks at the versions that other nodes hold by another plan, and notes
// those whose files are not those of this node's plan. Without a marker the files
// have to settle first.
func (o *observer) compare(ctx context.Context) {
	for id, plan := range o.other {
		name := version.Name(id)
		if failed := o.last.looks[name]; o.again && o.now.Before(failed.retry) {
			o.lookAfterFailure(name, failed)
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, o.limit)
		began := time.Now()
		l, err := o.list(ctx, name)
		cancel()
		switch {
		case errors.Is(err, fs.ErrNotExist):
			o.d.log.Debug("version cannot be compared with its plan: it is not in the source any more", "version", id)
		case err != nil || l.Incomplete != "":
			o.d.log.Debug("version cannot be compared with its plan", "version", id, "incomplete", l.Incomplete, "error", err)
			o.lookAfterFailure(name, o.failLook(name, fmt.Sprint(l.Incomplete, err)))
		case load.Unchanged(plan, l.Files):
			o.noteAlone(id, plan.Partitions)
		case o.unsettledAnew(name, &l, began) == "":
			o.found.changed = append(o.found.changed, id)
		}
	}
	slices.Sort(o.found.changed)
}

// noteAlone notes a version if no other node holds it by this node's plan.
func (o *observer) noteAlone(id string, partitions int) {
	if o.d.shared(id, partitions) {
		return
	}
	o.found.alone = append(o.found.alone, id)
	if !slices.Contains(o.last.alone, id) {
		o.lookAgain(o.now.Add(aloneAfter))
	}
}

// reportAlone reports the versions that have been alone for two listings.
func (d *db) reportAlone(before, now listing) {
	var alone []string
	for _, id := range now.alone {
		if !slices.Contains(before.alone, id) {
			continue
		}
		alone = append(alone, id)
		if !slices.Contains(d.alone, id) {
			d.log.Error(d.loneliness(id))
		}
	}
	d.alone = alone
}

// shared reports whether another node holds any partition of a version by this
// node's plan.
func (d *db) shared(id string, partitions int) bool {
	for p := range partitions {
		if d.node.o.Cluster.Replicas(d.name, id, p) > 0 {
			return true
		}
	}
	return false
}

// loneliness describes a version that all other nodes hold by another plan although
// this node's is that of the source, and what helps.
func (d *db) loneliness(id string) string {
	return fmt.Sprintf("other nodes have planned version %s of %s from other files or fields than this node, so that they do not use each other's blocks; "+
		"configure the same key, value and partitioner for it on all nodes, and write a new version", version.Name(id), d.name)
}

// divergence describes a current version that has changed.
func (d *db) divergence(shown *view, v versionView) string {
	text := fmt.Sprintf("version %s of %s is served by this node from other files than the source has now; it is being loaded again",
		version.Name(v.Name), d.name)
	if reason := shown.versions[v.revision].Reason; reason != "" {
		text += ", which has failed: " + reason
	}
	return text
}

// divergences describes all active versions that have changed.
func (n *Node) divergences() (problems []string) {
	for _, d := range *n.catalog.Load() {
		shown := d.view.Load()
		for id, v := range shown.versions {
			switch {
			case v.revision != "":
				problems = append(problems, d.divergence(shown, v))
			case v.alone:
				problems = append(problems, d.loneliness(id))
			}
		}
	}
	slices.Sort(problems)
	return problems
}

// unsettledAnew is unsettled for a version that was taken before and has changed.
func (o *observer) unsettledAnew(name string, l *source.Listing, began time.Time) string {
	if o.settle <= 0 || l.Marked() {
		return ""
	}
	return o.settling(name, l, began)
}
