package cluster

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"sequins/zk"
)

// Options say who this node is and by what rules it divides the data.
type Options struct {
	// Session is where znodes are written and watched. The Cluster does not
	// close it.
	Session *zk.Session
	// ShardID and Addr (host:port) are what the others know this node by. An
	// empty ShardID has the node choose the smallest number that no other node
	// has, which it keeps in ShardIDFile.
	ShardID, Addr string
	ShardIDFile   string
	Settings      Settings
	// MaxReplication keeps this node from taking a partition that has so many
	// replicas on other nodes; less than Settings.Replication is no limit.
	MaxReplication int
	// MinReplication is how many replicas of each partition a switch to a
	// version waits for, on any node.
	MinReplication int
	// Router makes this a node that holds nothing.
	Router bool
	// Converge is how long the members, this node among them, have to stay the
	// same before they are relied on, MinNodes how many there have to be when
	// this node starts.
	Converge time.Duration
	MinNodes int
	// HealAfter is how long the members may differ from those that a version
	// was divided among, or partitions have too few replicas, before it is
	// divided again; 0 is for ever.
	HealAfter time.Duration
	// Logger gets one line for each event that matters; nil: slog.Default().
	Logger *slog.Logger
}

// A Cluster is a node's view of the others. It implements version.Cluster.
type Cluster struct {
	o       Options
	log     *slog.Logger
	self    atomic.Pointer[Member] // nil for a router, and until a shard id has been chosen
	changes chan struct{}
	// patience is how long Join waits for a shard id that this node remembers
	// and another node has.
	patience time.Duration

	members atomic.Pointer[membership]
	// versions are those that are followed; never changed, only replaced.
	versions atomic.Pointer[map[key]*following]
	// dbs are those that any node holds something of; never changed, only replaced.
	dbs atomic.Pointer[map[string]bool]

	mu      sync.Mutex          // held while versions is replaced, and for what following says
	ctx     context.Context     // until Leave: nothing is published after that
	leave   context.CancelFunc  // called with mu held
	refuted map[string][]string // what this node has told; see nodeData
	told    []string            // the znodes that make this node known; empty before Join
	running sync.WaitGroup

	complaints map[string]bool // that have been logged; belongs to the goroutine of watchMembers
}

type key struct{ db, version string }

// New returns a view of nobody. Join opens it.
func New(o Options) (*Cluster, error) {
	if o.Session == nil || o.Addr == "" || o.ShardID == "" && (o.Router || o.ShardIDFile == "") {
		return nil, errors.New("a node of a cluster needs a session, an address, and a shard id or a file to keep one in")
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	c := &Cluster{
		o: o, log: o.Logger, changes: make(chan struct{}, 1), patience: o.Session.Timeout(),
		refuted: make(map[string][]string), complaints: make(map[string]bool),
	}
	c.ctx, c.leave = context.WithCancel(context.Background())
	if !o.Router && o.ShardID != "" {
		c.self.Store(c.member(o.ShardID))
	}
	c.members.Store(newMembership(nil, c.self.Load(), o.Settings, time.Now()))
	c.versions.Store(&map[key]*following{})
	c.dbs.Store(&map[string]bool{})
	return c, nil
}

// member is this node as the others know it.
func (c *Cluster) member(shardID string) *Member {
	return &Member{ShardID: shardID, Addr: c.o.Addr, Settings: &c.o.Settings}
}

// ShardID returns the shard id of this node. It is empty until Join has chosen
// one, if none was given.
func (c *Cluster) ShardID() string {
	if m := c.self.Load(); m != nil {
		return m.ShardID
	}
	return c.o.ShardID
}

// Leave implements version.Cluster.
func (c *Cluster) Leave() {
	c.mu.Lock()
	c.leave()
	told := c.told
	followed := *c.versions.Load() // which stays: requests that still come are proxied by what was last seen
	c.mu.Unlock()
	for _, f := range followed {
		c.withdraw(f)
	}
	for _, path := range told {
		c.o.Session.Unpublish(path)
	}
	ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
	defer cancel()
	if err := c.o.Session.Flush(ctx); err != nil {
		c.log.Warn("other nodes could not be told that this one leaves; they will find out when its session expires", "error", err)
	}
	c.running.Wait()
}

// leaveTimeout bounds how long a shutdown waits for ZooKeeper.
const leaveTimeout = 2 * time.Second

// Changes implements version.Cluster.
func (c *Cluster) Changes() <-chan struct{} { return c.changes }

func (c *Cluster) changed() {
	select {
	case c.changes <- struct{}{}:
	default:
	}
}

// minLinger is how long what was replaced or given up stays at least: other nodes
// hear of it a moment later.
const minLinger = time.Second

// Knows implements version.Cluster.
func (c *Cluster) Knows(db string) bool { return (*c.dbs.Load())[db] }

// watchDatabases keeps the names of the databases that nodes hold something of, until Leave. Those that it finds first are
// tidied once: when the last node of a database crashes, nobody removes its directory.
func (c *Cluster) watchDatabases() {
	dbs := c.o.Session.Watch(zk.PartitionsDir, false)
	defer dbs.Stop()
	tidied := false
	for {
		select {
		case <-dbs.Changes():
			names := make(map[string]bool)
			for _, e := range dbs.Entries() {
				names[e.Name] = true
			}
			c.dbs.Store(&names)
			if !tidied {
				tidied = true
				c.running.Go(func() {
					for db := range names {
						c.tidy(db, "")
					}
				})
			}
		case <-c.ctx.Done():
			return
		}
	}
}

// Linger implements version.Cluster: other nodes may be behind.
func (c *Cluster) Linger(configured time.Duration) time.Duration { return max(configured, minLinger) }

// watchMembers keeps the membership until Leave.
func (c *Cluster) watchMembers(nodes *zk.Children) {
	defer nodes.Stop()
	c.updateMembers(nodes.Entries())
	for {
		select {
		case <-nodes.Changes():
			c.updateMembers(nodes.Entries())
		case <-c.ctx.Done():
			return
		}
	}
}

func (c *Cluster) updateMembers(entries []zk.Entry) {
	old := c.members.Load()
	members, malformed := parseMembers(entries)
	ms := newMembership(members, c.self.Load(), c.o.Settings, time.Now())
	ms.entries = entries
	ms.listed = old.listed || c.o.Router || slices.ContainsFunc(members, func(m Member) bool { return m.Addr == c.o.Addr })
	if ms.listed == old.listed && slices.EqualFunc(old.all, ms.all, sameMember) {
		ms.since = old.since
	}
	c.members.Store(ms)
	c.logMembers(old, ms)
	c.complain(append(malformed, ms.problems...))
	c.changed()
}

func sameMember(a, b Member) bool {
	return a.ShardID == b.ShardID && a.Addr == b.Addr && a.settings() == b.settings()
}

func (c *Cluster) logMembers(old, now *membership) {
	for _, m := range now.all {
		if _, known := old.shardOf[m.Addr]; !known {
			c.log.Info("node has joined", "node", m.Addr, "shard_id", m.ShardID, "nodes", len(now.all))
		}
	}
	for _, m := range old.all {
		if _, there := now.shardOf[m.Addr]; !there {
			c.log.Warn("node has left", "node", m.Addr, "shard_id", m.ShardID, "nodes", len(now.all))
		}
	}
}

// complain logs what is wrong with the members, each complaint once until it
// has been gone.
func (c *Cluster) complain(complaints []string) {
	now := make(map[string]bool, len(complaints))
	for _, text := range complaints {
		now[text] = true
		if !c.complaints[text] {
			c.log.Error("cluster: " + text)
		}
	}
	for text := range c.complaints {
		if !now[text] {
			c.log.Info("cluster: resolved: " + text)
		}
	}
	c.complaints = now
}

// Members returns the nodes that divide the data, this one among them, by
// shard id and address. The result is not to be changed.
func (c *Cluster) Members() []Member { return c.members.Load().all }

// Problems says what keeps the nodes from being one cluster, in sentences.
func (c *Cluster) Problems() []string { return c.members.Load().problems }

// Status says how the session with ZooKeeper is.
func (c *Cluster) Status() zk.Status { return c.o.Session.Status() }

// replace changes the table of versions.
func (c *Cluster) replace(change func(map[key]*following)) {
	table := maps.Clone(*c.versions.Load())
	change(table)
	c.versions.Store(&table)
}
