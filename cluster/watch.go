package cluster

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"time"

	"sequins/internal/content"
	"sequins/version/report"
	"sequins/zk"
)

// watch returns the state of a version, and begins to watch it if necessary. c.mu is held.
func (c *Cluster) watch(k key) *watched {
	if w := c.versions[k]; w != nil {
		return w
	}
	w := &watched{key: k, c: c, inputs: make(map[content.Input]*following)}
	if c.away.Load() && c.o.AskRemembered {
		w.advertisements = c.rememberedOf(k)
	}
	w.known, w.setKnown = context.WithCancel(c.ctx)
	w.dirs[0] = c.keep(k.db, zk.VersionDir(k.db, k.version), w.updatePartitions)
	w.dirs[1] = c.keep(k.db, zk.GateDir(k.db, k.version), w.updateReports)
	c.versions[k] = w
	return w
}

// keep watches a directory of a database, of all if db is empty, and calls update with its znodes when they are known, and after each change.
func (c *Cluster) keep(db, path string, update func([]zk.Entry)) *zk.Children {
	return c.o.Session.Watch(path, func(entries []zk.Entry) {
		update(entries)
		c.changed(db)
	})
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

// updateElsewhere updates which nodes advertise or report contents, and ends known when both are. c.mu is held.
func (w *watched) updateElsewhere() {
	if w.listed && w.reports != nil {
		w.setKnown()
	}
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

// updateReports replaces the reports of other nodes. One that cannot be parsed is left out, as if the node had not reported yet.
func (w *watched) updateReports(entries []zk.Entry) {
	w.c.mu.Lock()
	defer w.c.mu.Unlock()
	before := w.parsed
	w.parsed, w.reports = make(map[string]parsedReport), make(map[content.Content]map[string]report.Report)
	for _, e := range entries {
		c, addr, err := zk.ParseReport(w.version, e.Name)
		if err != nil || addr == w.c.o.Addr || e.Unreadable {
			continue
		}
		r, found := before[e.Name]
		if !found || !bytes.Equal(r.data, e.Data) {
			r.data = e.Data
			if r.Report, err = report.Parse(e.Data); err != nil {
				continue
			}
		}
		w.parsed[e.Name] = r
		if w.reports[c] == nil {
			w.reports[c] = make(map[string]report.Report)
		}
		w.reports[c][addr] = r.Report
	}
	w.updateElsewhere()
}

// Reports implements version.Following.
func (f *following) Reports() (map[string]report.Report, bool) {
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
	if c.dbs.Swap(&entries) != nil {
		return
	}
	for _, e := range entries {
		c.prune(e.Name)
	}
}
