package cluster

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"sequins/version"
	"sequins/zk"
)

// following is the state of one followed version. It implements version.Following.
type following struct {
	key
	c        *Cluster
	children directory       // nil if followed after Leave
	ctx      context.Context // ends with Stop or Leave
	end      context.CancelFunc

	// view is read-only and replaced as a whole, with updating held.
	view      atomic.Pointer[view]
	updating  sync.Mutex // c.mu must not be locked while it is held
	malformed bool       // a malformed znode was logged; guarded by updating
	// plan is the plan of this node's blocks, "" until SetPlan. It is set with both
	// locks held.
	plan string

	// The fields below are guarded by c.mu.
	advertised   map[int]bool
	held         map[int]bool // partitions that this node holds, advertised or not yet
	division     *division    // nil until SetPlan
	switched     bool         // this node has switched to the version
	sufficed     bool         // all partitions had enough replicas at some time since then
	stable       bool         // the division has been stable for Converge
	lackingSince time.Time    // when replicas were first found missing; zero if none are
	reports      reports
}

// directory lists the znodes of a version. It is a zk.Children.
type directory interface {
	Entries() []zk.Entry
	Changes() <-chan struct{}
	Seen() <-chan struct{}
	Stop()
}

// view lists the nodes that hold partitions by this node's plan.
type view struct {
	replicas [][]string // addresses that advertise each partition
	// peers are the replicas and the vanished ones: a node that has lost ZooKeeper
	// may still answer.
	peers    [][]string
	vanished map[holding]time.Time // replicas that are not advertised any more, since when
	plans    []string              // other plans by which nodes hold partitions, sorted
}

// holding is one partition on one node.
type holding struct {
	partition int
	addr      string
}

const (
	// missedFor is how long a node remains a peer for a partition that it no
	// longer advertises.
	missedFor = 10 * time.Minute
	// maxMissed limits the vanished peers of one partition.
	maxMissed = 8
)

// next returns the view that follows v, from what is advertised now.
func (v *view) next(r holdings, now time.Time) *view {
	replicas := r.byPartition
	n := &view{replicas: replicas, peers: replicas, vanished: make(map[holding]time.Time)}
	n.plans = slices.Sorted(maps.Keys(r.plans))
	gone := func(h holding) bool {
		return !r.others[h] && !slices.Contains(at(replicas, h.partition), h.addr)
	}
	for h, since := range v.vanished {
		if now.Sub(since) < missedFor && gone(h) {
			n.vanished[h] = since
		}
	}
	for p, before := range v.replicas {
		for _, addr := range before {
			if h := (holding{p, addr}); gone(h) {
				n.vanished[h] = now
			}
		}
	}
	if len(n.vanished) == 0 {
		return n
	}
	n.peers = make([][]string, max(len(replicas), len(v.peers)))
	for p := range n.peers {
		n.peers[p] = slices.Clip(at(replicas, p))
	}
	for h := range n.vanished {
		if len(n.peers[h.partition]) < len(at(replicas, h.partition))+maxMissed {
			n.peers[h.partition] = append(n.peers[h.partition], h.addr)
		}
	}
	return n
}

func at(table [][]string, partition int) []string {
	if uint(partition) >= uint(len(table)) {
		return nil
	}
	return table[partition]
}

// Follow implements version.Cluster.
func (c *Cluster) Follow(ctx context.Context, db, id string) version.Following {
	f := c.follow(key{db, id})
	if f.children == nil {
		return f
	}
	select {
	case <-f.children.Seen():
		f.update()
	case <-f.ctx.Done():
	case <-ctx.Done():
	}
	return f
}

// follow returns the state of a followed version, and begins to follow it if
// necessary. After Leave it is not updated.
func (c *Cluster) follow(k key) *following {
	c.mu.Lock()
	defer c.mu.Unlock()
	revisions := c.revisions[k.inSource()]
	if i := slices.IndexFunc(revisions, func(f *following) bool { return f.key == k }); i >= 0 {
		return revisions[i]
	}
	f := c.newFollowing(k)
	if f.ctx.Err() != nil {
		return f
	}
	f.children = c.o.Session.Watch(zk.VersionDir(k.db, version.Name(k.version)), true)
	revisions = append(revisions, f)
	slices.SortFunc(revisions, func(a, b *following) int { return strings.Compare(b.version, a.version) })
	c.revisions[k.inSource()] = revisions
	c.running.Go(f.watch)
	return f
}

func (c *Cluster) newFollowing(k key) *following {
	f := &following{key: k, c: c, advertised: make(map[int]bool), held: make(map[int]bool)}
	f.ctx, f.end = context.WithCancel(c.ctx)
	f.view.Store(new(view))
	return f
}

// watch updates the view until Stop or Leave.
func (f *following) watch() {
	defer f.children.Stop()
	for {
		select {
		case <-f.children.Changes():
			f.update()
			f.c.changed()
		case <-f.ctx.Done():
			return
		}
	}
}

// update computes the view from the current znodes.
func (f *following) update() {
	f.updating.Lock()
	before := f.view.Load()
	f.updateView(before)
	now := f.view.Load()
	f.updating.Unlock()

	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	f.assess(before)
	f.assess(now)
	f.updateReports() // which nodes hold the version as this one does has changed
}

// updateView replaces the view by the one that follows before. f.updating is held,
// so that the view of the newest znodes is stored last.
func (f *following) updateView(before *view) {
	if f.children == nil {
		return
	}
	r := parseReplicas(f.children.Entries(), f.c.o.Addr, f.plan)
	if r.malformed != "" && !f.malformed {
		f.malformed = true
		f.c.log.Warn("ignoring malformed znode", "db", f.db, "version", f.version, "error", r.malformed)
	}
	f.view.Store(before.next(r, time.Now()))
}

// maxPartitions limits the size of the tables, which the name of a znode determines.
const maxPartitions = 1 << 20

// holdings is what other nodes advertise of a version.
type holdings struct {
	byPartition [][]string       // addresses of the nodes that hold it by this node's plan
	others      map[holding]bool // held by other plans only, or by a plan that cannot be read
	plans       map[string]bool  // the other plans
	malformed   string           // the error of the last malformed znode
}

// parseReplicas returns what nodes other than self advertise. plan is this node's
// plan.
func parseReplicas(entries []zk.Entry, self, plan string) holdings {
	r := holdings{others: make(map[holding]bool), plans: make(map[string]bool)}
	var plans planParser
	for _, e := range entries {
		p, addr, err := zk.ParsePartition(e.Name)
		if err != nil {
			r.malformed = err.Error()
			continue
		}
		if p >= maxPartitions {
			r.malformed = e.Name + ": no such partition"
			continue
		}
		if addr == self {
			continue
		}
		theirs, err := plans.parse(e.Data)
		if err != nil {
			r.malformed = e.Name + ": " + err.Error()
			r.others[holding{p, addr}] = true
			continue
		}
		r.add(p, addr, theirs, plan)
	}
	return r
}

// add adds a replica of a partition.
func (r *holdings) add(p int, addr string, theirs partitionData, plan string) {
	r.addPlan(theirs.Plan, plan)
	for _, other := range theirs.Also {
		r.addPlan(other, plan)
	}
	if !theirs.holds(plan) {
		r.others[holding{p, addr}] = true
		return
	}
	if p >= len(r.byPartition) {
		r.byPartition = append(r.byPartition, make([][]string, p+1-len(r.byPartition))...)
	}
	r.byPartition[p] = append(r.byPartition[p], addr)
}

// addPlan adds the plan of a replica to the other plans unless it is this node's.
func (r *holdings) addPlan(theirs, plan string) {
	if plan != "" && theirs != "" && theirs != plan {
		r.plans[theirs] = true
	}
}

// Peers implements version.Following.
func (f *following) Peers(partition int) []string { return at(f.view.Load().peers, partition) }

// Replicas implements version.Following.
func (f *following) Replicas(partition int) int { return len(f.replicas(partition)) }

// replicas returns the other nodes that advertise a partition.
func (f *following) replicas(partition int) []string { return at(f.view.Load().replicas, partition) }

// OtherPlans implements version.Following.
func (f *following) OtherPlans() []string { return slices.Clone(f.view.Load().plans) }

// Missing implements version.Following.
func (f *following) Missing(held []bool, minReplication int) []int {
	var missing []int
	for p, here := range held {
		n := f.Replicas(p)
		if here {
			n++
		}
		if n < minReplication {
			missing = append(missing, p)
		}
	}
	return missing
}

// Stop implements version.Following.
func (f *following) Stop() {
	c, name := f.c, f.inSource()
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.ctx.Err() != nil {
		return
	}
	f.end()
	f.unpublish()
	f.unreport()
	left := slices.DeleteFunc(c.revisions[name], func(each *following) bool { return each == f })
	if c.revisions[name] = left; len(left) == 0 {
		delete(c.revisions, name)
		c.forgetRefuted(name)
	}
	c.running.Go(func() { c.prune(name.db, name.version) })
}

// pruneTimeout limits the wait for the listing of a directory to be pruned.
const pruneTimeout = 30 * time.Second

// prune removes the directories of a database's versions up to last, or of all if last is empty, and that of the
// database, if they are empty and not followed. Nodes that crash leave their directories.
func (c *Cluster) prune(db, last string) {
	for _, root := range []string{zk.PartitionsDir, zk.GatesDir} {
		c.pruneBelow(root+"/"+db, db, last)
	}
}

// pruneBelow is prune for the directory of one kind of znodes.
func (c *Cluster) pruneBelow(dir, db, last string) {
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
		if (last == "" || e.Name <= last) && !c.followed(db, e.Name) {
			c.o.Session.Prune(dir + "/" + e.Name)
		}
	}
	c.o.Session.Prune(dir)
}

// followed reports whether any revision of a version is followed.
func (c *Cluster) followed(db, name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.revisions[key{db, name}] != nil
}

// Advertise implements version.Following.
func (f *following) Advertise(partition int) {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	if f.ctx.Err() != nil {
		return
	}
	f.advertised[partition], f.held[partition] = true, true
	f.publish(partition)
}

// publish updates the znode of a partition with the plans by which this node
// advertises it, and removes the znode if no revision advertises it. c.mu is held.
func (f *following) publish(partition int) {
	c, name := f.c, f.inSource()
	path := zk.PartitionPath(name.db, name.version, partition, c.o.Addr)
	advertised, d := false, partitionData{}
	for _, each := range c.revisions[name] { // newest first
		if each.advertised[partition] {
			advertised = true
			d.add(each.plan)
		}
	}
	if !advertised {
		c.o.Session.Unpublish(path)
		return
	}
	c.o.Session.Publish(path, d.encode())
}

// Withdraw implements version.Following.
func (f *following) Withdraw(partitions ...int) {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	f.unpublish(partitions...)
}

// unpublish is Withdraw with c.mu held.
func (f *following) unpublish(partitions ...int) {
	named := func(p int, _ bool) bool { return len(partitions) == 0 || slices.Contains(partitions, p) }
	for p := range f.advertised {
		if named(p, true) {
			delete(f.advertised, p)
			f.publish(p)
		}
	}
	maps.DeleteFunc(f.held, named)
}
