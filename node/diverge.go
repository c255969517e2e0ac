package node

import (
	"context"
	"fmt"
	"slices"

	"sequins/load"
	"sequins/source"
	"sequins/version"
)

// Two nodes can plan a version differently: a version without a marker whose job
// paused for longer than settle, or that somebody has changed. Replicas of one plan
// are neither counted nor asked by nodes of the other. Each node that sees another
// plan than its own compares its plan with the source whenever it lists that, and
// plans the version anew if the files are others. What clients are answered from
// does not change: then the node reports that its answers differ.

// compare looks at the versions that other nodes hold by another plan, and notes
// those whose files are not those of this node's plan. Without a marker the files
// have to settle first.
func (o *observer) compare(ctx context.Context) {
	for name, plan := range o.other {
		ctx, cancel := context.WithTimeout(ctx, o.limit)
		l, err := o.list(ctx, name)
		cancel()
		switch {
		case err != nil || l.Incomplete != "":
			o.d.log.Debug("version cannot be compared with its plan", "version", name, "incomplete", l.Incomplete, "error", err)
		case load.Unchanged(plan, l.Files):
			if !o.d.shared(name, plan.Partitions) {
				o.found.alone = append(o.found.alone, name)
			}
		case o.unsettledAnew(name, &l) == "":
			o.found.changed = append(o.found.changed, name)
		}
	}
	slices.Sort(o.found.changed)
}

// planAnew has versions planned anew that a listing has found changed, unless they
// have been meanwhile. An active one stays as it is, and is reported.
func (d *db) planAnew(l listing) {
	if l.err != nil {
		return
	}
	for _, name := range l.alone {
		if !slices.Contains(d.alone, name) {
			d.log.Error(d.loneliness(name))
		}
	}
	d.alone = l.alone
	before := d.diverged
	d.diverged = nil
	for _, name := range l.changed {
		now := d.live[name]
		switch {
		case now == nil || !now.manifest.SamePlan(l.compared[name]):
		case name != d.state.Current:
			d.log.Warn("other nodes have planned a version by other files, which are those of the source now; it is planned anew", "version", name)
			d.handle(version.Changed{Version: name})
		default:
			d.diverged = append(d.diverged, name)
			if !slices.Contains(before, name) {
				d.log.Error(d.divergence(name))
			}
		}
	}
}

// shared reports whether another node holds any partition of a version by this
// node's plan.
func (d *db) shared(name string, partitions int) bool {
	for p := range partitions {
		if d.node.o.Cluster.Replicas(d.name, name, p) > 0 {
			return true
		}
	}
	return false
}

// loneliness tells what is wrong with a version that all other nodes hold by
// another plan although this node's is that of the source, and what helps.
func (d *db) loneliness(name string) string {
	return fmt.Sprintf("other nodes have planned version %s of %s from other files or fields than this node, so that they do not use each other's blocks; "+
		"configure the same key, value and partitioner for it on all nodes, and write a new version", name, d.name)
}

// divergence tells what is wrong with an active version that has changed, and what
// helps.
func (d *db) divergence(name string) string {
	return fmt.Sprintf("version %s of %s is served by this node from other files than the source has now, and by other nodes from those; "+
		"write it again under a new name", name, d.name)
}

// divergences tells of all active versions that have changed.
func (n *Node) divergences() (problems []string) {
	for _, d := range *n.catalog.Load() {
		for name, v := range d.view.Load().versions {
			switch {
			case v.diverged:
				problems = append(problems, d.divergence(name))
			case v.alone:
				problems = append(problems, d.loneliness(name))
			}
		}
	}
	slices.Sort(problems)
	return problems
}

// unsettledAnew is unsettled for a version that was taken before and has changed.
func (o *observer) unsettledAnew(name string, l *source.Listing) string {
	if o.settle <= 0 || l.Marked() {
		return ""
	}
	return o.settling(name, l)
}
