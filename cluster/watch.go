package cluster

import (
	"context"
	"maps"
	"slices"
	"time"

	"sequins/internal/content"
	"sequins/zk"
)

// watch returns the state of a version, and begins to watch it if necessary. c.mu is held.
func (c *Cluster) watch(k key) *watched {
	if w := c.versions[k]; w != nil {
		return w
	}
	w := &watched{
		key: k, c: c, inputs: make(map[content.Input]*following),
		partitionsKnown: make(chan struct{}), reportsKnown: make(chan struct{}),
	}
	if c.away.Load() {
		w.advertisements = c.recalled.Load().versions[k]
	}
	w.ctx, w.end = context.WithCancel(c.ctx)
	c.versions[k] = w
	c.keep(w.ctx, zk.VersionDir(k.db, k.version), true, w.partitionsKnown, w.updatePartitions)
	c.keep(w.ctx, zk.GateDir(k.db, k.version), true, w.reportsKnown, w.updateReports)
	return w
}

// keep watches a directory until ctx ends, and calls update with its znodes when they are known, for the first time before known is closed, and after each
// change.
func (c *Cluster) keep(ctx context.Context, path string, data bool, known chan struct{}, update func([]zk.Entry)) *zk.Children {
	dir := c.o.Session.Watch(path, data, func(entries []zk.Entry) {
		update(entries)
		if known != nil {
			close(known)
			known = nil
		}
		c.changed()
	})
	context.AfterFunc(ctx, dir.Stop)
	return dir
}

// updatePartitions updates the views of all followed inputs.
func (w *watched) updatePartitions(entries []zk.Entry) {
	all, malformed := parseAdvertisements(entries, w.version, w.c.o.Addr)
	if malformed != nil && !w.malformed {
		w.malformed = true
		w.c.log.Warn("ignoring malformed znode", "db", w.db, "version", w.version, "error", malformed)
	}
	w.c.mu.Lock()
	defer w.c.mu.Unlock()
	w.listed, w.advertisements = true, withVanished(all, w.advertisements, time.Now())
	w.updateElsewhere()
	for _, f := range w.inputs {
		f.assess() // by the replicas until now, with what this node has advertised since
		f.updateView()
		f.assess()
	}
}

// updateElsewhere updates which nodes advertise or report contents. c.mu is held.
func (w *watched) updateElsewhere() {
	all := make(map[content.Content][]string)
	for _, a := range w.advertisements {
		for _, c := range a.contents {
			if a.vanished.IsZero() {
				all[c] = append(all[c], a.addr)
			}
		}
	}
	for c, reports := range w.reports {
		all[c] = slices.AppendSeq(all[c], maps.Keys(reports))
	}
	for c, addrs := range all {
		slices.Sort(addrs)
		all[c] = slices.Compact(addrs)
	}
	w.elsewhere = all
}

// updateReports replaces the reports of other nodes.
func (w *watched) updateReports(entries []zk.Entry) {
	w.c.mu.Lock()
	defer w.c.mu.Unlock()
	w.reports = make(map[content.Content]map[string][]byte)
	for _, e := range entries {
		c, addr, err := zk.ParseReport(w.version, e.Name)
		if err != nil || addr == w.c.o.Addr || e.Unreadable {
			continue
		}
		if w.reports[c] == nil {
			w.reports[c] = make(map[string][]byte)
		}
		w.reports[c][addr] = e.Data
	}
	w.updateElsewhere()
}

// Reports implements version.Following.
func (f *following) Reports() (map[string][]byte, bool) {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	return f.reports[f.content], f.reports != nil
}

// Elsewhere implements version.Following.
func (f *following) Elsewhere() map[content.Content][]string {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	return f.elsewhere
}

// prune removes the directories of a database's versions, and that of the database, if they are empty. Nodes that crash
// leave their directories.
func (c *Cluster) prune(db string) {
	c.o.Session.Prune(zk.PartitionsDir + "/" + db)
	c.o.Session.Prune(zk.GatesDir + "/" + db)
}

// updateDatabases updates the names of the databases that nodes hold something of. Those that it finds first are
// tidied once: when the last node of a database crashes, nobody removes its directory.
func (c *Cluster) updateDatabases(entries []zk.Entry) {
	names := make(map[string]bool)
	for _, e := range entries {
		names[e.Name] = true
	}
	if c.dbs.Swap(&names) != nil {
		return
	}
	for db := range names {
		c.prune(db)
	}
}
