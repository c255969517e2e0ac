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

// following is the state of one followed version.
type following struct {
	key
	children directory       // nil after Leave
	ctx      context.Context // ends with Forget or Leave
	end      context.CancelFunc

	// view is read-only and replaced as a whole, with updating held.
	view     atomic.Pointer[view]
	updating sync.Mutex // guards the fields up to advertised
	plan     string     // plan of this node's blocks; "" until known
	// malformed znodes were logged.
	malformed bool

	// The fields below are guarded by Cluster.mu, which must not be locked with
	// updating held.
	advertised     map[int]bool
	advertisedPlan string       // is plan
	held           map[int]bool // partitions that this node holds, advertised or not yet
	division       *division    // nil until SetPlan
	switched       bool         // this node has switched to the version
	sufficed       bool         // all partitions had enough replicas at some time since then
	stable         bool         // the division has been stable for Converge
	lackingSince   time.Time    // when replicas were first found missing; zero if none are
}

// directory is the znodes of a version: a zk.Children.
type directory interface {
	Entries() []zk.Entry
	Changes() <-chan struct{}
	Seen() <-chan struct{}
	Stop()
}

// view is what other nodes hold by this node's plan, by partition.
type view struct {
	replicas [][]string // advertised addresses
	// peers are the replicas and those that vanished recently: a node that has
	// lost ZooKeeper may still answer.
	peers    [][]string
	plans    []string              // other plans, by which nodes hold something, sorted
	vanished map[holding]time.Time // those, and when they were first missed
}

type holding struct {
	partition int
	addr      string
}

const (
	// missedFor is how long a node remains a peer for a partition that it no
	// longer advertises.
	missedFor = 10 * time.Minute
	// maxMissed bounds the vanished peers of one partition.
	maxMissed = 8
)

// next is the view after v when replicas are advertised.
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
func (c *Cluster) Follow(ctx context.Context, db, version string) {
	f := c.follow(key{db, version})
	if f.children == nil {
		return
	}
	select {
	case <-f.children.Seen():
		c.update(f)
	case <-f.ctx.Done():
	case <-ctx.Done():
	}
}

// follow returns the state of a followed version, and begins to follow it if
// necessary. After Leave it is not updated.
func (c *Cluster) follow(k key) *following {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := (*c.versions.Load())[k]; f != nil {
		return f
	}
	f := newFollowing(k)
	f.ctx, f.end = context.WithCancel(c.ctx)
	if f.ctx.Err() != nil {
		return f
	}
	f.children = c.o.Session.Watch(zk.VersionDir(k.db, version.Name(k.version)), true)
	c.replace(func(m map[key]*following) { m[k] = f })
	revisions := append(c.revisions[k.inSource()], f)
	slices.SortFunc(revisions, func(a, b *following) int { return strings.Compare(b.version, a.version) })
	c.revisions[k.inSource()] = revisions
	c.running.Go(func() { c.watch(f) })
	return f
}

func newFollowing(k key) *following {
	f := &following{key: k, advertised: make(map[int]bool), held: make(map[int]bool)}
	f.view.Store(new(view))
	return f
}

// watch updates the view of a version until Forget.
func (c *Cluster) watch(f *following) {
	defer f.children.Stop()
	for {
		select {
		case <-f.children.Changes():
			c.update(f)
			c.changed()
		case <-f.ctx.Done():
			return
		}
	}
}

// update computes the view from the current znodes.
func (c *Cluster) update(f *following) {
	f.updating.Lock()
	before := f.view.Load()
	c.updateView(f, before)
	now := f.view.Load()
	f.updating.Unlock()

	c.mu.Lock()
	defer c.mu.Unlock()
	c.assess(f, before)
	c.assess(f, now)
}

// updateView replaces the view by the successor of before. f.updating is held, so
// that the view of the newest znodes is stored last.
func (c *Cluster) updateView(f *following, before *view) {
	if f.children == nil {
		return
	}
	r := parseReplicas(f.children.Entries(), c.o.Addr, f.plan)
	if r.malformed != "" && !f.malformed {
		f.malformed = true
		c.log.Warn("ignoring malformed znode", "db", f.db, "version", f.version, "error", r.malformed)
	}
	f.view.Store(before.next(r, time.Now()))
}

// maxPartitions bounds the table that a znode's name can allocate.
const maxPartitions = 1 << 20

// holdings are what other nodes advertise of a version.
type holdings struct {
	byPartition [][]string       // addresses of those that hold it by one plan
	others      map[holding]bool // what is held by other plans only, or by a plan that cannot be read
	plans       map[string]bool  // the other plans
	malformed   string           // what is wrong with the last malformed znode
}

// parseReplicas makes the tables of who holds what by a plan, and by others,
// without this node itself.
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

// add adds a replica of a partition to the tables of a plan.
func (r *holdings) add(p int, addr string, theirs partitionData, plan string) {
	r.note(theirs.Plan, plan)
	for _, also := range theirs.Also {
		r.note(also, plan)
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

// note notes a plan if it is another one.
func (r *holdings) note(theirs, plan string) {
	if plan != "" && theirs != "" && theirs != plan {
		r.plans[theirs] = true
	}
}

// find returns the state of a followed version, or nil.
func (c *Cluster) find(db, version string) *following {
	return (*c.versions.Load())[key{db, version}]
}

// Peers implements version.Cluster.
func (c *Cluster) Peers(db, version string, partition int) []string {
	if f := c.find(db, version); f != nil {
		return at(f.view.Load().peers, partition)
	}
	return nil
}

// Replicas implements version.Cluster.
func (c *Cluster) Replicas(db, version string, partition int) int {
	if f := c.find(db, version); f != nil {
		return len(f.replicas(partition))
	}
	return 0
}

// replicas returns the other nodes that advertise a partition.
func (f *following) replicas(partition int) []string { return at(f.view.Load().replicas, partition) }

// OtherPlans implements version.Cluster.
func (c *Cluster) OtherPlans(db, version string) []string {
	if f := c.find(db, version); f != nil {
		return slices.Clone(f.view.Load().plans)
	}
	return nil
}

// Missing implements version.Cluster.
func (c *Cluster) Missing(db, version string, held []bool, minReplication int) []int {
	f := c.find(db, version)
	var missing []int
	for p, here := range held {
		n := 0
		if f != nil {
			n = len(f.replicas(p))
		}
		if here {
			n++
		}
		if n < minReplication {
			missing = append(missing, p)
		}
	}
	return missing
}

// Forget implements version.Cluster.
func (c *Cluster) Forget(db, id string) {
	c.mu.Lock()
	f, name := c.find(db, id), key{db, version.Name(id)}
	known := f != nil && c.ctx.Err() == nil
	if known {
		c.replace(func(m map[key]*following) { delete(m, f.key) })
		c.forgetRevision(name, f)
	}
	if c.revisions[name] == nil {
		c.forgetRefuted(name)
	}
	c.mu.Unlock()
	if !known {
		return
	}
	f.end()
	c.withdraw(f)
	c.running.Go(func() { c.prune(db, name.version) })
}

// forgetRevision removes f from the revisions of a version. c.mu is held.
func (c *Cluster) forgetRevision(name key, f *following) {
	left := slices.DeleteFunc(c.revisions[name], func(each *following) bool { return each == f })
	if c.revisions[name] = left; len(left) == 0 {
		delete(c.revisions, name)
	}
}

// pruneTimeout bounds the wait for the listing of a directory to be pruned.
const pruneTimeout = 30 * time.Second

// prune removes the directories of a database's versions up to last, or of all if last is empty, and that of the
// database, as far as they are empty and not followed: nodes that crashed have left theirs.
func (c *Cluster) prune(db, last string) {
	versions := c.o.Session.Watch(zk.DatabaseDir(db), false)
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
			c.o.Session.Prune(zk.VersionDir(db, e.Name))
		}
	}
	c.o.Session.Prune(zk.DatabaseDir(db))
}

// followed reports whether any revision of a version is followed.
func (c *Cluster) followed(db, name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.revisions[key{db, name}] != nil
}

// Advertise implements version.Cluster.
func (c *Cluster) Advertise(db, version string, partition int) {
	f := c.find(db, version)
	if f == nil {
		f = c.follow(key{db, version})
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil {
		return
	}
	f.advertised[partition], f.held[partition] = true, true
	c.publish(f, partition)
}

// publish updates the znode of a partition with the plans by which this node
// advertises it, and removes the znode if no revision advertises it. c.mu is held.
func (c *Cluster) publish(f *following, partition int) {
	name := f.inSource()
	path := zk.PartitionPath(name.db, name.version, partition, c.o.Addr)
	advertised, d := false, partitionData{}
	for _, each := range c.revisions[name] { // newest first
		switch {
		case !each.advertised[partition]:
		case !advertised:
			advertised, d.Plan = true, each.advertisedPlan
		default:
			d.Also = append(d.Also, each.advertisedPlan)
		}
	}
	if !advertised {
		c.o.Session.Unpublish(path)
		return
	}
	c.o.Session.Publish(path, d.encode())
}

// Withdraw implements version.Cluster.
func (c *Cluster) Withdraw(db, version string, partitions ...int) {
	if f := c.find(db, version); f != nil {
		c.withdraw(f, partitions...)
	}
}

func (c *Cluster) withdraw(f *following, partitions ...int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unpublish(f, partitions...)
}

// unpublish is withdraw with c.mu held.
func (c *Cluster) unpublish(f *following, partitions ...int) {
	for p := range f.advertised {
		if len(partitions) == 0 || slices.Contains(partitions, p) {
			delete(f.advertised, p)
			c.publish(f, p)
		}
	}
	maps.DeleteFunc(f.held, func(p int, _ bool) bool { return len(partitions) == 0 || slices.Contains(partitions, p) })
}
