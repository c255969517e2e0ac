package cluster

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"sequins/internal/content"
	"sequins/zk"
)

// key names a version of a database.
type key struct{ db, version string }

// watched is what other nodes publish of a version. Its directories are watched once for all of its inputs that are
// followed.
type watched struct {
	key
	c                             *Cluster
	ctx                           context.Context // ends when no input is followed, and with Leave
	end                           context.CancelFunc
	partitionsKnown, reportsKnown chan struct{} // closed when the directory has been listed
	malformed                     bool          // a malformed znode was logged; used only by updatePartitions

	// The fields below are guarded by c.mu.
	inputs         map[content.Input]*following          // the followed ones
	advertisements []advertisement                       // see withVanished
	reports        map[content.Content]map[string][]byte // by address
	elsewhere      map[content.Content][]string          // of both; see Elsewhere
}

// watch returns the state of a version, and begins to watch it if necessary. c.mu is held.
func (c *Cluster) watch(k key) *watched {
	if w := c.versions[k]; w != nil {
		return w
	}
	w := &watched{
		key: k, c: c, inputs: make(map[content.Input]*following),
		partitionsKnown: make(chan struct{}), reportsKnown: make(chan struct{}),
	}
	w.ctx, w.end = context.WithCancel(c.ctx)
	c.versions[k] = w
	if w.ctx.Err() == nil {
		c.keep(w.ctx, c.o.Session.Watch(zk.VersionDir(k.db, k.version), true), w.partitionsKnown, w.updatePartitions)
		c.keep(w.ctx, c.o.Session.Watch(zk.GateDir(k.db, k.version), true), w.reportsKnown, w.updateReports)
	}
	return w
}

// keep calls update with the znodes of a directory when they are known, for the first time before known is closed, and after each change,
// until ctx ends.
func (c *Cluster) keep(ctx context.Context, dir *zk.Children, known chan struct{}, update func([]zk.Entry)) {
	c.running.Go(func() {
		defer dir.Stop()
		changes := dir.Seen()
		for {
			select {
			case <-changes:
			case <-ctx.Done():
				return
			}
			update(dir.Entries())
			if known != nil {
				close(known)
				known = nil
			}
			changes = dir.Changes()
			c.changed()
		}
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
	w.advertisements = withVanished(all, w.advertisements, time.Now())
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

// maxPartitions limits the size of the tables, which the name of a znode determines.
const maxPartitions = 1 << 20

// holding is one partition on one node.
type holding struct {
	partition int
	addr      string
}

// advertisement is what another node publishes of a partition.
type advertisement struct {
	holding
	contents   []content.Content // none of an upstream node, which serves any, and if unreadable
	unreadable bool
	vanished   time.Time // since when it is not published any more; zero: it is
}

// parseAdvertisements returns what nodes other than self advertise of a version, and the last error.
func parseAdvertisements(entries []zk.Entry, version, self string) (all []advertisement, malformed error) {
	var last []byte // most znodes of a version have the same data
	var contents []content.Content
	var invalid error
	for _, e := range entries {
		p, addr, err := zk.ParsePartition(e.Name)
		if err == nil && p >= maxPartitions {
			err = fmt.Errorf("znode %q: no such partition", e.Name)
		}
		if err != nil {
			malformed = err
			continue
		}
		if addr == self {
			continue
		}
		if !bytes.Equal(e.Data, last) {
			contents, invalid = zk.ParseContents(version, e.Data)
			last = e.Data
		}
		if invalid != nil {
			malformed = fmt.Errorf("znode %q: %w", e.Name, invalid)
		}
		all = append(all, advertisement{holding: holding{p, addr}, contents: contents, unreadable: invalid != nil || e.Unreadable})
	}
	return all, malformed
}

// serves reports whether a is of a content, or if c has no division, of any content of its input.
func (a advertisement) serves(c content.Content) bool {
	if len(a.contents) == 0 {
		return !a.unreadable
	}
	return slices.ContainsFunc(a.contents, func(theirs content.Content) bool {
		return theirs == c || c.Division == "" && theirs.Input == c.Input
	})
}

// updateReports replaces the reports of other nodes. Those that have not changed keep their memory.
func (w *watched) updateReports(entries []zk.Entry) {
	w.c.mu.Lock()
	defer w.c.mu.Unlock()
	before := w.reports
	w.reports = make(map[content.Content]map[string][]byte)
	for _, e := range entries {
		c, addr, err := zk.ParseReport(w.version, e.Name)
		if err != nil || addr == w.c.o.Addr || e.Unreadable {
			continue
		}
		data := e.Data
		if old, found := before[c][addr]; found && bytes.Equal(old, data) {
			data = old
		}
		if w.reports[c] == nil {
			w.reports[c] = make(map[string][]byte)
		}
		w.reports[c][addr] = data
	}
	w.updateElsewhere()
}

// Reports implements version.Following.
func (f *following) Reports() (map[string][]byte, bool) {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	select {
	case <-f.reportsKnown:
		return f.reports[f.content], true
	default:
		return nil, false
	}
}

// Elsewhere implements version.Following.
func (f *following) Elsewhere() map[content.Content][]string {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	return f.elsewhere
}

// pruneTimeout limits the wait for the listing of a directory to be pruned.
const pruneTimeout = 30 * time.Second

// prune removes the directories of a database's versions up to last, or of all if last is empty, and that of the
// database, if they are empty and not followed. Nodes that crash leave their directories.
func (c *Cluster) prune(db, last string) {
	followed := func(name string) bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.versions[key{db, name}] != nil
	}
	for _, root := range []string{zk.PartitionsDir, zk.GatesDir} {
		dir := root + "/" + db
		versions := c.o.Session.Watch(dir, false)
		defer versions.Stop()
		select {
		case <-versions.Seen():
		case <-c.ctx.Done():
			return
		case <-time.After(pruneTimeout):
			return
		}
		for _, e := range versions.Entries() {
			if (last == "" || e.Name <= last) && !followed(e.Name) {
				c.o.Session.Prune(dir + "/" + e.Name)
			}
		}
		c.o.Session.Prune(dir)
	}
}
