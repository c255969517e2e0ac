package node

import (
	"slices"

	"sequins/load"
	"sequins/shard"
	"sequins/version"
)

// refuted returns the partitioners that are known not to be those of a version's files: from the plan
// in the store, and from any node of the cluster.
func (d *db) refuted(name string, f version.Following) []shard.Partitioner {
	var all []shard.Partitioner
	if dir, err := d.node.o.Store.Dir(d.name, name); err == nil {
		all = load.Refuted(dir.Manifest())
	}
	for _, text := range f.Refuted() {
		if p, err := shard.ParsePartitioner(text); err == nil { // a later release may know others
			all = append(all, p)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// isRefuted reports whether this or another node has refuted the detected partitioner of a plan. A
// version that is served, or was before a restart, cannot be refuted, because every record of it was
// checked by the node that loaded its partition. Nor can a version with a single partition, which every
// partitioner fits, or one of finished blocks, whose partitioner is not detected.
func (d *db) isRefuted(l *live) bool {
	if d.state.WasServed(l.v.Info().Name) || !l.manifest.Aligned || l.manifest.Partitions <= 1 || load.IsFinished(l.manifest) {
		return false
	}
	switch d.node.loadOptions(d.name).Partitioner {
	case "", "auto":
		return slices.Contains(l.Refuted(), l.manifest.Partitioner)
	}
	return false
}

// abandonRefuted cancels the load of a version whose plan another node has refuted. The load begins
// again with another plan.
func (d *db) abandonRefuted(name string) {
	l, live := d.loads[name], d.live[name]
	if l == nil || live == nil || l.refuted || !live.manifest.SamePlan(l.manifest) || !d.isRefuted(live) {
		return
	}
	d.log.Info("another node has refuted the partitioner of a load, which begins anew", "version", name, "partitioner", l.manifest.Partitioner)
	l.refuted = true
	l.cancel()
}
