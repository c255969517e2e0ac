package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	// ShardID and Addr (host:port) are what the others know this node by.
	ShardID, Addr string
	Settings      Settings
	// MaxReplication keeps this node from taking a partition that has so many
	// replicas on other nodes; less than Settings.Replication is no limit.
	MaxReplication int
	// MinReplication is how many replicas of each partition a switch to a
	// version waits for, on any node.
	MinReplication int
	// Router makes this a node that holds nothing.
	Router bool
	// Converge is how long the members have to stay the same before they are
	// relied on, MinNodes how many there have to be when this node starts.
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
	self    *Member // nil for a router
	changes chan struct{}

	members atomic.Pointer[membership]
	// versions are those that are followed; never changed, only replaced.
	versions atomic.Pointer[map[key]*following]

	mu      sync.Mutex         // held while versions is replaced, and for what following says
	ctx     context.Context    // until Leave: nothing is published after that
	leave   context.CancelFunc // called with mu held
	running sync.WaitGroup

	complaints map[string]bool // that have been logged; belongs to the goroutine of watchMembers
}

type key struct{ db, version string }

// New returns a view of nobody. Join opens it.
func New(o Options) (*Cluster, error) {
	if o.Session == nil || o.Addr == "" || o.ShardID == "" {
		return nil, errors.New("a node of a cluster needs a session, an address and a shard id")
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	c := &Cluster{o: o, log: o.Logger, changes: make(chan struct{}, 1), complaints: make(map[string]bool)}
	c.ctx, c.leave = context.WithCancel(context.Background())
	if !o.Router {
		c.self = &Member{ShardID: o.ShardID, Addr: o.Addr, Settings: &o.Settings}
	}
	c.members.Store(newMembership(nil, c.self, o.Settings, time.Now()))
	c.versions.Store(&map[key]*following{})
	return c, nil
}

// path is the znode that makes this node known.
func (c *Cluster) path() string {
	if c.o.Router {
		return zk.RouterPath(c.o.ShardID, c.o.Addr)
	}
	return zk.NodePath(c.o.ShardID, c.o.Addr)
}

// waitingPeriod is how often a start that waits is heard of in the log.
const waitingPeriod = 5 * time.Second

// Join implements version.Cluster: it publishes this node and waits until the
// members have been seen, are enough, and have not changed for Converge.
// ZooKeeper may be away for as long as it likes.
func (c *Cluster) Join(ctx context.Context) error {
	settings, err := json.Marshal(c.o.Settings)
	if err != nil {
		return fmt.Errorf("publishing this node's settings: %w", err)
	}
	c.o.Session.Publish(c.path(), settings)
	nodes := c.o.Session.Watch(zk.NodesDir, true)
	c.running.Go(func() { c.watchMembers(nodes) })
	c.running.Go(c.keepDivided)

	began := time.Now()
	log := time.NewTicker(waitingPeriod)
	defer log.Stop()
	look := time.NewTicker(min(max(c.o.Converge/10, time.Millisecond), waitingPeriod/50))
	defer look.Stop()
	for {
		reason := c.unsettled(nodes)
		if reason == "" {
			c.log.Info("joined the cluster", "nodes", len(c.members.Load().all), "shard_id", c.o.ShardID,
				"address", c.o.Addr, "after", time.Since(began).Round(time.Millisecond))
			return nil
		}
		select {
		case <-look.C:
		case <-log.C:
			c.log.Info("joining the cluster", "waiting_for", reason, "since", time.Since(began).Round(time.Second))
		case <-ctx.Done():
			return fmt.Errorf("joining the cluster: waiting for %s: %w", reason, ctx.Err())
		}
	}
}

// unsettled says what a start still waits for, "" if for nothing.
func (c *Cluster) unsettled(nodes *zk.Children) string {
	select {
	case <-nodes.Seen():
	default:
		if s := c.o.Session.Status(); s.LastError != "" {
			return "ZooKeeper (" + s.LastError + ")"
		}
		return "ZooKeeper"
	}
	ms := c.members.Load()
	switch {
	case len(ms.all) < c.o.MinNodes:
		return fmt.Sprintf("%d nodes of %d", c.o.MinNodes-len(ms.all), c.o.MinNodes)
	case time.Since(ms.since) < c.o.Converge:
		return fmt.Sprintf("the %d nodes to stay the same for %s", len(ms.all), c.o.Converge)
	}
	return ""
}

// Leave implements version.Cluster.
func (c *Cluster) Leave() {
	c.mu.Lock()
	c.leave()
	followed := *c.versions.Load() // which stays: requests that still come are proxied by what was last seen
	c.mu.Unlock()
	for _, f := range followed {
		c.withdraw(f)
	}
	c.o.Session.Unpublish(c.path())
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

// Linger implements version.Cluster: other nodes may be behind.
func (c *Cluster) Linger(configured time.Duration) time.Duration { return configured }

// watchMembers keeps the membership until Leave.
func (c *Cluster) watchMembers(nodes *zk.Children) {
	defer nodes.Stop()
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
	ms := newMembership(members, c.self, c.o.Settings, time.Now())
	if slices.EqualFunc(old.all, ms.all, sameMember) {
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
