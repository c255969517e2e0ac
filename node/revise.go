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
	"sequins/version"
)

// Two nodes can have different plans of a version: if it has no marker and its job paused for longer
// than settle, or if it was modified. Replicas of one plan are not counted and not asked by nodes of
// the other. A node that sees another plan compares its own plan with the source. If the files in the
// source differ, the node loads the version again as a revision, see version.Revise. It compares its
// current version, too, if that is a revision, or if it cannot restore a block that no other node holds.

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
	for _, id := range l.changed {
		now := d.live[id]
		if now == nil || !now.manifest.SamePlan(l.compared[id]) {
			continue
		}
		next := d.nextRevision(id)
		if !slices.Contains(d.last.versions, next) { // a newer version may be loaded first
			d.log.Warn("the files of a version have changed in the source, and it has to be loaded from them; clients are answered from the blocks before until then",
				"version", id, "revision", next)
		}
		l.versions = slices.DeleteFunc(slices.Clone(l.versions), func(v string) bool { return v == id })
		l.versions = append(l.versions, next)
		slices.Sort(l.versions)
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

// aloneAfter is how long a node waits for another node with its plan before it reports that there is
// none: the others may be loading the version again.
const aloneAfter = time.Minute

// compare inspects the versions in other, and records those whose files
// differ from this node's plan. The files must settle first: a marker applies to the files before the
// change.
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
		case load.Unchanged(plan, l.Files) && id == o.changed:
		case load.Unchanged(plan, l.Files):
			o.noteAlone(id, plan.Partitions)
		case load.OnlyDeleted(plan, l.Files): // the blocks have more than the source
			o.noteWrong(id, o.d.deletedFiles(id))
		case o.settling(name, &l, began) == "":
			o.found.changed = append(o.found.changed, id)
		}
	}
	slices.Sort(o.found.changed)
}

// noteAlone records a version if no other node holds it by this node's plan.
func (o *observer) noteAlone(id string, partitions int) {
	if !o.d.shared(id, partitions) {
		o.noteWrong(id, o.d.unshared(id))
	}
}

// noteWrong records what is wrong with a version. It is reported if the next listing finds the same.
func (o *observer) noteWrong(id, text string) {
	o.found.wrong[id] = text
	if o.last.wrong[id] != text {
		o.lookAgain(o.now.Add(aloneAfter))
	}
}

// reportWrong reports what two consecutive listings have found to be wrong.
func (d *db) reportWrong(before, now listing) {
	wrong := make(map[string]string)
	for id, text := range now.wrong {
		if before.wrong[id] != text {
			continue
		}
		wrong[id] = text
		if d.wrong[id] != text {
			d.log.Error(text)
		}
	}
	d.wrong = wrong
}

// shared reports whether another node holds any partition of a version by this node's plan.
func (d *db) shared(id string, partitions int) bool {
	for p := range partitions {
		if d.node.o.Cluster.Replicas(d.name, id, p) > 0 {
			return true
		}
	}
	return false
}

// unshared describes a version that all other nodes hold by another plan although this node's plan
// matches the source, with a remedy.
func (d *db) unshared(id string) string {
	return fmt.Sprintf("other nodes have planned version %s of %s from other files or fields than this node, so that they do not use each other's blocks; "+
		"configure the same key, value and partitioner for it on all nodes, unless its files have been changed or deleted, and write a new version",
		version.Name(id), d.name)
}

// deletedFiles describes a version of which files have been deleted from the source, with a remedy.
func (d *db) deletedFiles(id string) string {
	return fmt.Sprintf("files of version %s of %s have been deleted from the source; it is served from the blocks of all of its files, "+
		"and nodes that have no blocks of it do not see those files; write a new version", version.Name(id), d.name)
}

// divergence describes a current version whose files have changed.
func (d *db) divergence(shown *view, v versionView) string {
	text := fmt.Sprintf("version %s of %s is served by this node from other files than the source has now; it is being loaded again",
		version.Name(v.Name), d.name)
	if reason := shown.versions[v.revision].Reason; reason != "" {
		text += ", which has failed: " + reason
	}
	return text
}

// divergences describes all active versions whose files have changed, and those with something wrong.
func (n *Node) divergences() (problems []string) {
	for _, d := range *n.catalog.Load() {
		shown := d.view.Load()
		for _, v := range shown.versions {
			switch {
			case v.revision != "":
				problems = append(problems, d.divergence(shown, v))
			case v.wrong != "":
				problems = append(problems, v.wrong)
			}
		}
	}
	slices.Sort(problems)
	return problems
}
