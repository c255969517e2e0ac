package node

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"sequins/cluster/transfer"
	"sequins/internal/content"
	"sequins/load"
	"sequins/node/events"
	"sequins/store"
	"sequins/version"
	"sequins/version/discovery"
)

// common is what the parts of a db share. It belongs to the goroutine of the db, except where it says otherwise.
type common struct {
	node *shared
	name string
	log  *slog.Logger
	// events are told what happens to versions, and log it.
	events *events.DB
	set    *version.Set
	bg     background // work outside of the goroutine

	facts   version.Facts
	records map[content.Input]*record // of each entry of facts
	live    map[content.Input]*live   // of each version in the set
	last    discovery.Listing         // the last successful listing of the source
	marked  atomic.Bool               // a version has _SUCCESS; for any goroutine
}

// A record is what is known of a version in addition to its entry.
type record struct {
	created   time.Time // first seen by this node, maybe before a restart
	found     time.Time // first seen by this process
	activeAt  time.Time
	retry     time.Time         // the end of the pause after its last failure
	needs     float64           // bytes of the disk that a partition needs, as far as failed attempts have shown
	reloaded  []int             // partitions set aside as damaged since the last retry
	err       error             // of its last load
	unchanged int               // number of partitions that were linked, see package unchanged
	following version.Following // nil until it is opened or loaded
	// later is the manifest of another division of the input that another node holds, and that is later in the order of detection than
	// this node's: a record has refuted this node's.
	later     *store.Manifest
	divisions []content.Content // of the input, on other nodes, that were compared with this node's
}

// options returns the settings of the database. Any goroutine may call it.
func (d *common) options() DB { return d.node.reloadable.Load().DB(d.name) }

// loadOptions returns the options for a new load. Any goroutine may call it.
func (d *common) loadOptions() load.Options {
	o := d.options()
	o.Load.RequireSuccess = o.Load.RequireSuccess || o.AutoSuccess && d.marked.Load()
	return o.Load
}

// isLoading reports whether a load of an input waits or runs.
func (d *common) isLoading(in content.Input) bool {
	v, _ := d.facts.Entry(in)
	return v.Work == version.Loading || v.Work == version.Cancelling
}

// isElsewhere reports whether another node holds one of the first partitions of a version.
func isElsewhere(f version.Following, partitions int) bool {
	return version.IsReadable(f, make([]bool, max(1, partitions)))
}

// isRefuted reports whether another node has found a later division of a version.
func (d *common) isRefuted(l *live) bool {
	r := d.records[l.in()]
	return r.later != nil && load.Later(*r.later, l.manifest)
}

// isWhole reports whether every partition of the current version is on this node or on a known one.
func (d *common) isWhole() bool {
	l := d.live[d.facts.Current]
	return l != nil && len(version.Missing(l, l.v.Held(), 1)) == 0
}

// take takes what most other nodes serve of the database (transfer.Latest) into the facts; nothing if none serves it, or none has answered.
func (d *common) take(serving map[string]map[string]content.Content) {
	c := transfer.Latest(serving, d.name)
	if c.Name == "" || c.Input == d.facts.Taken {
		return
	}
	d.facts.Taken = c.Input
	if c.Name > d.facts.Before().Name {
		d.log.Info("other nodes serve a version, which this node serves before newer ones", "version", c.Name)
	}
}

// isBehind reports whether another node serves a newer version than was served here, which it takes into the facts.
func (d *common) isBehind(serving map[string]map[string]content.Content) bool {
	for addr, all := range serving {
		if c := all[d.name]; c.Name > d.facts.Before().Name {
			d.log.Warn("another node serves a newer version, so nothing is served until the cluster can be joined", "peer", addr, "version", c.Name)
			d.facts.Taken = c.Input
			return true
		}
	}
	return false
}

// followTimeout limits the first lookups of the replicas and manifests of all versions that are opened together. Later updates arrive asynchronously.
const followTimeout = 10 * time.Second

// manifestElsewhere asks other nodes for the manifests of the wanted contents, all of one input, and returns the manifest of the latest division; nil if
// no node gives one. Any goroutine may call it.
func (d *common) manifestElsewhere(ctx context.Context, f version.Following, wanted func(content.Content) bool) *store.Manifest {
	var latest *store.Manifest
	for c, addrs := range f.Elsewhere() {
		if !wanted(c) {
			continue
		}
		if m := d.askManifest(ctx, addrs, c); m != nil && (latest == nil || load.Later(*m, *latest)) {
			latest = m
		}
	}
	return latest
}

// askManifest asks other nodes for the manifest of a content; nil if none gives it. Any goroutine may call it.
func (d *common) askManifest(ctx context.Context, addrs []string, c content.Content) *store.Manifest {
	m, err := d.node.transfer.Manifest(ctx, addrs, d.name, c)
	if err != nil {
		d.log.Debug("another node does not give the manifest of a version", "version", c.Name, "nodes", addrs, "error", err)
		return nil
	}
	return &m
}
