package cluster

import (
	"bytes"

	"sequins/version"
	"sequins/zk"
)

// reports are what nodes report of a version. The fields are guarded by c.mu, as those of following.
type reports struct {
	own       []byte       // nil for nothing
	path      string       // where it is published; "" if it is not
	children  *zk.Children // nil before the first call of Reports
	others    map[string][]byte
	otherPlan string // by which others was selected
	known     bool
}

// Report implements version.Following.
func (f *following) Report(data []byte) {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	if f.ctx.Err() == nil {
		f.reports.own = data
		f.publishReport()
	}
}

// publishReport publishes the report of this node by the plan of SetPlan. c.mu is held.
func (f *following) publishReport() {
	r, path := &f.reports, ""
	if r.own != nil && f.plan != "" {
		path = zk.ReportPath(f.db, version.Name(f.version), f.plan, f.c.o.Addr)
	}
	if r.path != "" && r.path != path {
		f.c.o.Session.Unpublish(r.path)
	}
	if r.path = path; path != "" {
		f.c.o.Session.Publish(path, r.own)
	}
}

// unreport withdraws the report of this node. c.mu is held.
func (f *following) unreport() {
	f.reports.own = nil
	f.publishReport()
}

// Reports implements version.Following.
func (f *following) Reports() (map[string][]byte, bool) {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	if f.reports.children == nil && f.ctx.Err() == nil {
		f.reports.children = f.c.o.Session.Watch(zk.GateDir(f.db, version.Name(f.version)), true)
		f.c.running.Go(f.watchReports)
	}
	if f.reports.otherPlan != f.plan {
		f.updateReports()
	}
	return f.reports.others, f.reports.known
}

// watchReports keeps the reports of others until Stop or Leave.
func (f *following) watchReports() {
	children := f.reports.children
	defer children.Stop()
	seen := children.Seen() // an empty directory causes no change
	for {
		select {
		case <-seen:
			seen = nil
		case <-children.Changes():
		case <-f.ctx.Done():
			return
		}
		f.c.mu.Lock()
		f.updateReports()
		f.c.mu.Unlock()
		f.c.changed()
	}
}

// updateReports selects the reports of other nodes by this node's plan. Those that have not changed keep their memory.
// c.mu is held.
func (f *following) updateReports() {
	r := &f.reports
	if r.children == nil {
		return
	}
	before := r.others
	r.others, r.otherPlan = make(map[string][]byte), f.plan
	for _, e := range r.children.Entries() {
		plan, addr, err := zk.ParseReport(e.Name)
		if err != nil || plan != f.plan || addr == f.c.o.Addr {
			continue
		}
		if old, found := before[addr]; found && bytes.Equal(old, e.Data) {
			r.others[addr] = old
			continue
		}
		r.others[addr] = e.Data
	}
	select {
	case <-r.children.Seen():
		r.known = true
	default:
	}
}
