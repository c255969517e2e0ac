package cluster

import (
	"context"
	"slices"

	"sequins/internal/content"
	"sequins/version"
	"sequins/zk"
)

// Follow implements version.Cluster.
func (c *Cluster) Follow(ctx context.Context, db string, in content.Input) version.Following {
	f := c.follow(db, in)
	if c.away.Load() {
		return f
	}
	select {
	case <-f.known.Done():
	case <-ctx.Done():
	}
	return f
}

// follow returns the state of a followed input, and begins to follow it if necessary. After Leave it is not updated.
func (c *Cluster) follow(db string, in content.Input) *following {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.watch(key{db, in.Name})
	f := w.inputs[in]
	if f == nil {
		f = &following{watched: w, content: content.Content{Input: in}, advertised: make(map[int]bool)}
		f.updateView()
		w.inputs[in] = f
	}
	return f
}

// SetDivision implements version.Following.
func (f *following) SetDivision(division string, partitions int) {
	c := f.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.stopped {
		return
	}
	other := f.content.Division != division
	if other {
		f.unpublish()
		f.unreport()
		f.content.Division = division
		f.updateView()
		f.assignment, f.history = nil, history{}
	}
	f.partitions = partitions
	f.divide()
	if other {
		c.changed(f.db)
	}
}

// divide assigns the partitions to the members, unless they are assigned, or this node is away. c.mu is held.
func (f *following) divide() {
	if f.content.Division == "" || f.c.away.Load() {
		return
	}
	if f.assignment == nil || len(f.assignment.owners) != f.partitions {
		f.assignment = f.assign(f.c.members.Load(), f.partitions)
	}
	f.assess()
}

// arrive ends the time in which this node was away: it has joined, and takes its share.
func (c *Cluster) arrive() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.away.Swap(false) {
		return
	}
	c.recalled.Store(&remembered{})
	for _, w := range c.versions {
		for _, f := range w.inputs {
			f.divide()
		}
	}
	c.changed("")
}

// Advertise implements version.Following. There is nothing to advertise before SetDivision: a znode without a content would
// count for all of them.
func (f *following) Advertise(partition int) {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	if f.stopped || f.content.Division == "" {
		return
	}
	f.advertised[partition] = true
	f.publish(partition)
}

// publish updates the znode of a partition with the contents of which this node advertises it, and removes the znode if
// there are none. c.mu is held.
func (f *following) publish(partition int) {
	var contents []content.Content
	for _, each := range f.inputs {
		if each.advertised[partition] {
			contents = append(contents, each.content)
		}
	}
	path := zk.PartitionPath(f.db, f.version, partition, f.c.o.Addr)
	if len(contents) == 0 {
		f.c.o.Session.Unpublish(path)
		return
	}
	f.c.o.Session.Publish(path, zk.EncodeContents(contents))
}

// Withdraw implements version.Following.
func (f *following) Withdraw(partitions ...int) {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	f.unpublish(partitions...)
}

// unpublish is Withdraw with c.mu held.
func (f *following) unpublish(partitions ...int) {
	for p := range f.advertised {
		if len(partitions) == 0 || slices.Contains(partitions, p) {
			delete(f.advertised, p)
			f.publish(p)
		}
	}
}

// Report implements version.Following.
func (f *following) Report(data []byte) {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	if !f.stopped && f.content.Division != "" {
		f.c.o.Session.Publish(f.reportPath(), data)
	}
}

// unreport withdraws the report of this node, if there is one. c.mu is held.
func (f *following) unreport() { f.c.o.Session.Unpublish(f.reportPath()) }

func (f *following) reportPath() string { return zk.ReportPath(f.db, f.content, f.c.o.Addr) }

// Stop implements version.Following.
func (f *following) Stop() {
	c := f.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.stopped {
		return
	}
	f.unpublish()
	f.unreport()
	f.stopped = true
	if delete(f.inputs, f.content.Input); len(f.inputs) == 0 {
		f.setKnown()
		for _, dir := range f.dirs {
			dir.Stop()
		}
		delete(c.versions, f.key)
	}
	c.prune(f.db)
}
